/** The rules of all services, and the transactions that bring the kernel's table from one state to the next. */
import type { ServiceFrontends } from "../frontends.ts";
import { baseRules, chooseChains, type EndpointKind, endpointMap, nftFamily, type TableOptions } from "./base-rules.ts";
import { elementId, frontendKey, type MapElement, noRules, type ServiceRules, serviceRules } from "./service-rules.ts";

/** Elements in one command: a longer line takes no less time. */
const ELEMENTS_PER_COMMAND = 500;

interface Entry {
  readonly frontends: ServiceFrontends;
  readonly rules: ServiceRules;
}

export interface FrontendConflict {
  /** `address . protocol . port`. */
  readonly frontend: string;
  readonly owner: string;
  readonly others: readonly string[];
}

/** A chain, set or element that services share counts its users. */
interface Shared<T> {
  readonly value: T;
  users: number;
}

export class ServiceTable {
  readonly #options: TableOptions;
  readonly #services = new Map<string, Entry>();
  readonly #elements = new Map<string, Shared<MapElement>>();
  readonly #chains = new Map<string, Shared<readonly string[]>>();
  readonly #sets = new Map<string, Shared<string>>();
  /** The services that want a frontend; the first has it. */
  readonly #owners = new Map<string, readonly string[]>();
  /** The frontends that several want. */
  readonly #contested = new Set<string>();
  /** How many endpoint maps and which choosing chains the kernel's table has. */
  readonly #maps: Record<EndpointKind, number> = { cluster: 0, local: 0 };
  readonly #counts = new Set<string>();

  constructor(options: TableOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#services.size;
  }

  /** Which services are refused a frontend because another has it. */
  conflicts(): readonly FrontendConflict[] {
    return [...this.#contested].map((frontend) => {
      const [owner = "", ...others] = this.#owners.get(frontend) ?? [];
      return { frontend, owner, others };
    });
  }

  /** Returns the transaction for changed services, whose text may be empty. `undefined` removes a service. */
  update(changes: ReadonlyMap<string, ServiceFrontends | undefined>): { text(): string } {
    const transaction = new Transaction(this.#options);
    const pending = new Map(changes);
    for (const [key, wanted] of pending) {
      // A frontend that another service waits for passes to it.
      for (const waiting of this.#claim(key, wanted)) {
        const heir = pending.has(waiting) ? pending.get(waiting) : this.#services.get(waiting)?.frontends;
        // Visits the service again if it was visited before.
        pending.delete(waiting);
        pending.set(waiting, heir);
      }
      this.#replace(key, wanted, transaction);
    }
    return transaction;
  }

  /** Returns the transaction that replaces the kernel's table by one with all services. */
  rebuild(): string {
    this.#maps.cluster = 0;
    this.#maps.local = 0;
    this.#counts.clear();
    const transaction = new Transaction(this.#options);
    for (const { rules } of this.#services.values()) this.#ensureCounts(rules, transaction);
    for (const [name, { value }] of this.#sets) transaction.addSet(name, value);
    for (const [name, { value }] of this.#chains) transaction.setChain(name, value, undefined);
    for (const { value } of this.#elements.values()) transaction.addElement(value);
    return baseRules(this.#options) + transaction.text();
  }

  /** Returns the services that now may have a frontend. */
  #claim(key: string, wanted: ServiceFrontends | undefined): ReadonlySet<string> {
    const heirs = new Set<string>();
    const before = new Set((this.#services.get(key)?.frontends.frontends ?? []).map(frontendKey));
    const after = new Set((wanted?.frontends ?? []).map(frontendKey));
    for (const frontend of before) {
      if (after.has(frontend)) continue;
      const owners = (this.#owners.get(frontend) ?? []).filter((owner) => owner !== key);
      if (owners[0] !== undefined) heirs.add(owners[0]);
      this.#setOwners(frontend, owners);
    }
    for (const frontend of after) {
      if (before.has(frontend)) continue;
      this.#setOwners(frontend, [...(this.#owners.get(frontend) ?? []), key]);
    }
    return heirs;
  }

  #setOwners(frontend: string, owners: readonly string[]): void {
    if (owners.length === 0) this.#owners.delete(frontend);
    else this.#owners.set(frontend, owners);
    if (owners.length > 1) this.#contested.add(frontend);
    else this.#contested.delete(frontend);
  }

  #replace(key: string, wanted: ServiceFrontends | undefined, transaction: Transaction): void {
    const old = this.#services.get(key)?.rules ?? noRules;
    const owned = wanted === undefined ? undefined : this.#ownedFrontends(key, wanted);
    const next = owned === undefined ? noRules : serviceRules(owned, this.#options);
    if (wanted === undefined) this.#services.delete(key);
    else this.#services.set(key, { frontends: wanted, rules: next });
    this.#ensureCounts(next, transaction);
    // What the new rules share with the old ones stays, since its count of users does not reach 0.
    for (const [name, value] of next.sets) if (add(this.#sets, name, value)) transaction.addSet(name, value);
    for (const [name, rules] of next.chains) {
      const before = this.#chains.get(name);
      this.#chains.set(name, { value: rules, users: (before?.users ?? 0) + 1 });
      if (before?.value.join("\n") !== rules.join("\n")) transaction.setChain(name, rules, before?.value);
    }
    for (const [id, element] of next.elements) {
      const existing = this.#elements.get(id);
      if (existing !== undefined && existing.value.value !== element.value) {
        transaction.deleteElement(existing.value);
        this.#elements.set(id, { value: element, users: existing.users + 1 });
        transaction.addElement(element);
      } else if (add(this.#elements, id, element)) transaction.addElement(element);
    }
    for (const [id] of old.elements) {
      const released = release(this.#elements, id);
      if (released !== undefined) transaction.deleteElement(released);
    }
    for (const name of old.chains.keys()) {
      const released = release(this.#chains, name);
      if (released !== undefined) transaction.setChain(name, undefined, released);
    }
    for (const name of old.sets.keys()) {
      const released = release(this.#sets, name);
      if (released !== undefined) transaction.deleteSet(name, released);
    }
  }

  #ownedFrontends(key: string, wanted: ServiceFrontends): ServiceFrontends {
    const frontends = wanted.frontends.filter((frontend) => this.#owners.get(frontendKey(frontend))?.[0] === key);
    return frontends.length === wanted.frontends.length ? wanted : { ...wanted, frontends };
  }

  #ensureCounts({ counts }: ServiceRules, transaction: Transaction): void {
    for (const { kind, count } of counts) {
      const id = `${kind} ${count}`;
      if (this.#counts.has(id)) continue;
      for (; this.#maps[kind] < count; this.#maps[kind]++) {
        transaction.prepare(endpointMap(this.#options, kind, this.#maps[kind]));
      }
      this.#counts.add(id);
      transaction.prepare(chooseChains(this.#options, kind, count));
    }
  }
}

/** Whether it is the first user. */
function add<T>(all: Map<string, Shared<T>>, id: string, value: T): boolean {
  const existing = all.get(id);
  if (existing === undefined) all.set(id, { value, users: 1 });
  else existing.users++;
  return existing === undefined;
}

/** Returns what no user is left of. */
function release<T>(all: Map<string, Shared<T>>, id: string): T | undefined {
  const existing = all.get(id);
  if (existing === undefined || --existing.users > 0) return undefined;
  all.delete(id);
  return existing.value;
}

/** What the kernel has before and after a transaction; undefined for what does not exist. */
interface Change<T> {
  readonly before: T | undefined;
  after: T | undefined;
}

/** Collects the difference of two states, and orders commands so that verdicts only go to chains that exist. */
class Transaction {
  readonly #prefix: string;
  #prepared = "";
  readonly #sets = new Map<string, Change<string>>();
  readonly #chains = new Map<string, Change<readonly string[]>>();
  readonly #elements = new Map<string, Change<MapElement>>();

  constructor({ family, table }: TableOptions) {
    this.#prefix = `${nftFamily(family)} ${table}`;
  }

  /** Text that must come first. */
  prepare(text: string): void {
    this.#prepared += text;
  }

  addSet(name: string, definition: string): void {
    change(this.#sets, name, undefined, definition);
  }

  deleteSet(name: string, definition: string): void {
    change(this.#sets, name, definition, undefined);
  }

  setChain(name: string, rules: readonly string[] | undefined, before: readonly string[] | undefined): void {
    change(this.#chains, name, before, rules);
  }

  addElement(element: MapElement): void {
    change(this.#elements, elementId(element), undefined, element);
  }

  deleteElement(element: MapElement): void {
    change(this.#elements, elementId(element), element, undefined);
  }

  text(): string {
    const prefix = this.#prefix;
    const chains = [...this.#chains];
    const written = chains.flatMap(([name, { after }]) => (after === undefined ? [] : [{ name, rules: after }]));
    const removed = chains.filter(([, { before, after }]) => before !== undefined && after === undefined);
    const sets = [...this.#sets];
    const elements = [...this.#elements.values()].filter(({ before, after }) => before?.value !== after?.value);
    return [
      this.#prepared,
      ...sets.map(([name, { before, after }]) =>
        before === undefined && after !== undefined ? `add set ${prefix} ${name} ${after}\n` : "",
      ),
      ...written.map(({ name }) => `add chain ${prefix} ${name}\nflush chain ${prefix} ${name}\n`),
      ...written.flatMap(({ name, rules }) => rules.map((rule) => `add rule ${prefix} ${name} ${rule}\n`)),
      ...this.#commands(
        "delete",
        elements.flatMap(({ before }) => before ?? []),
      ),
      ...this.#commands(
        "add",
        elements.flatMap(({ after }) => after ?? []),
      ),
      ...removed.map(([name]) => `flush chain ${prefix} ${name}\n`),
      ...removed.map(([name]) => `delete chain ${prefix} ${name}\n`),
      ...sets.map(([name, { before, after }]) =>
        before !== undefined && after === undefined ? `delete set ${prefix} ${name}\n` : "",
      ),
    ].join("");
  }

  #commands(verb: "add" | "delete", elements: readonly MapElement[]): readonly string[] {
    const commands: string[] = [];
    for (const [map, list] of Map.groupBy(elements, (element) => element.map)) {
      for (let at = 0; at < list.length; at += ELEMENTS_PER_COMMAND) {
        const part = list.slice(at, at + ELEMENTS_PER_COMMAND).map(({ key, value }) => {
          return verb === "delete" || value === "" ? key : `${key} : ${value}`;
        });
        commands.push(`${verb} element ${this.#prefix} ${map} { ${part.join(", ")} }\n`);
      }
    }
    return commands;
  }
}

function change<T>(changes: Map<string, Change<T>>, id: string, before: T | undefined, after: T | undefined): void {
  const existing = changes.get(id);
  if (existing === undefined) changes.set(id, { before, after });
  else existing.after = after;
}
