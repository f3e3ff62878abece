/** The wanted sets, chains and elements of a table of nftables, and the transactions that bring the kernel's to it. */

/** Elements in one command: a longer line takes no less time. */
const ELEMENTS_PER_COMMAND = 500;

export interface MapElement {
  readonly map: string;
  readonly key: string;
  /** Empty for elements of sets. */
  readonly value: string;
}

export function elementId({ map, key }: MapElement): string {
  return `${map} ${key}`;
}

/** A chain, set or element that several add counts its users. */
interface Shared<T> {
  readonly value: T;
  users: number;
}

/**
 * What is added is shared by name: it stays until it was released as often. Replace a part by adding the new one before
 * the old one is released: what both have does not change then.
 */
export class RuleTable {
  /** `ip svc-proxy` */
  readonly #prefix: string;
  readonly #elements = new Map<string, Shared<MapElement>>();
  readonly #chains = new Map<string, Shared<readonly string[]>>();
  /** Definitions. */
  readonly #sets = new Map<string, Shared<string>>();
  #transaction: Transaction;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#transaction = new Transaction(prefix);
  }

  addSet(name: string, definition: string): void {
    if (add(this.#sets, name, definition)) this.#transaction.setSet(name, undefined, definition);
  }

  releaseSet(name: string): void {
    const released = release(this.#sets, name);
    if (released !== undefined) this.#transaction.setSet(name, released, undefined);
  }

  /** The rules replace those that the chain has. */
  addChain(name: string, rules: readonly string[]): void {
    const before = this.#chains.get(name);
    this.#chains.set(name, { value: rules, users: (before?.users ?? 0) + 1 });
    if (before?.value.join("\n") !== rules.join("\n")) this.#transaction.setChain(name, before?.value, rules);
  }

  releaseChain(name: string): void {
    const released = release(this.#chains, name);
    if (released !== undefined) this.#transaction.setChain(name, released, undefined);
  }

  /** The value replaces that which the element has. */
  addElement(element: MapElement): void {
    const id = elementId(element);
    const existing = this.#elements.get(id);
    if (existing !== undefined && existing.value.value !== element.value) {
      this.#elements.set(id, { value: element, users: existing.users + 1 });
      this.#transaction.setElement(existing.value, element);
    } else if (add(this.#elements, id, element)) this.#transaction.setElement(undefined, element);
  }

  releaseElement(id: string): void {
    const released = release(this.#elements, id);
    if (released !== undefined) this.#transaction.setElement(released, undefined);
  }

  get setNames(): IterableIterator<string> {
    return this.#sets.keys();
  }

  /** Returns the commands for what changed since the last call; empty if nothing did. */
  takeChanges(): string {
    const text = this.#transaction.text();
    this.#transaction = new Transaction(this.#prefix);
    return text;
  }

  /** Returns the commands that fill a table without any of it. */
  takeAll(): string {
    this.#transaction = new Transaction(this.#prefix);
    for (const [name, { value }] of this.#sets) this.#transaction.setSet(name, undefined, value);
    for (const [name, { value }] of this.#chains) this.#transaction.setChain(name, undefined, value);
    for (const { value } of this.#elements.values()) this.#transaction.setElement(undefined, value);
    return this.takeChanges();
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
  readonly #sets = new Map<string, Change<string>>();
  readonly #chains = new Map<string, Change<readonly string[]>>();
  readonly #elements = new Map<string, Change<MapElement>>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  setSet(name: string, before: string | undefined, after: string | undefined): void {
    change(this.#sets, name, before, after);
  }

  setChain(name: string, before: readonly string[] | undefined, after: readonly string[] | undefined): void {
    change(this.#chains, name, before, after);
  }

  setElement(before: MapElement | undefined, after: MapElement | undefined): void {
    const element = before ?? after;
    if (element !== undefined) change(this.#elements, elementId(element), before, after);
  }

  text(): string {
    const prefix = this.#prefix;
    const chains = [...this.#chains].filter(([, { before, after }]) => before?.join("\n") !== after?.join("\n"));
    const written = chains.flatMap(([name, { after }]) => (after === undefined ? [] : [{ name, rules: after }]));
    const removed = chains.filter(([, { before, after }]) => before !== undefined && after === undefined);
    const sets = [...this.#sets];
    const elements = [...this.#elements.values()].filter(({ before, after }) => before?.value !== after?.value);
    return [
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
