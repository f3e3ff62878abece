/** The rules of all services, and the transactions that bring the kernel's table from one state to the next. */
import { runSteps, type Steps } from "../../std/async/steps.ts";
import { RuleTable } from "../../std/nftables/rule-table.ts";
import { tablePrefix } from "../../std/nftables/table.ts";
import type { ServiceFrontends } from "../frontends.ts";
import type { AffinityClient } from "./affinity-clients.ts";
import { baseRules, chooseChains, type EndpointKind, endpointMap, type TableOptions } from "./base-rules.ts";
import { frontendKey, noRules, type ServiceRules, serviceRules } from "./service-rules.ts";

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

export class ServiceTable {
  readonly #options: TableOptions;
  readonly #services = new Map<string, Entry>();
  readonly #rules: RuleTable;
  /** Commands that come before those of `#rules`. */
  #prepared = "";
  /** The services that want a frontend; the first has it. */
  readonly #owners = new Map<string, readonly string[]>();
  /** The frontends that several want. */
  readonly #contested = new Set<string>();
  /** How many endpoint maps and which choosing chains the kernel's table has. */
  readonly #maps: Record<EndpointKind, number> = { cluster: 0, local: 0 };
  readonly #counts = new Set<string>();

  constructor(options: TableOptions) {
    this.#options = options;
    this.#rules = new RuleTable(tablePrefix(options));
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

  /**
   * Changes services; `undefined` removes one. The text is of the transaction for all changes since the last text, and
   * may be empty.
   */
  update(changes: ReadonlyMap<string, ServiceFrontends | undefined>): { text(): string } {
    return runSteps(this.updateInSteps(changes));
  }

  /** The same; the table must not be used until the last step. */
  *updateInSteps(changes: ReadonlyMap<string, ServiceFrontends | undefined>): Steps<{ text(): string }> {
    const pending = new Map(changes);
    for (const [key, wanted] of pending) {
      // A frontend that another service waits for passes to it.
      for (const waiting of yield* this.#claim(key, wanted)) {
        const heir = pending.has(waiting) ? pending.get(waiting) : this.#services.get(waiting)?.frontends;
        // Visits the service again if it was visited before.
        pending.delete(waiting);
        pending.set(waiting, heir);
      }
      yield* this.#replace(key, wanted);
    }
    return { text: () => this.#takePrepared() + this.#rules.takeChanges() };
  }

  /** The sets of clients of services with session affinity. */
  get affinitySets(): readonly string[] {
    return [...this.#rules.setNames];
  }

  /**
   * Returns the transaction that replaces the kernel's table by one with all services, and with the clients of those
   * with session affinity, by set.
   */
  rebuild(clients: ReadonlyMap<string, readonly AffinityClient[]> = new Map()): string {
    this.#maps.cluster = 0;
    this.#maps.local = 0;
    this.#counts.clear();
    this.#prepared = "";
    for (const { rules } of this.#services.values()) this.#ensureCounts(rules);
    const kept = this.affinitySets.flatMap((name) => {
      const elements = (clients.get(name) ?? []).map(({ address, seconds }) => `${address} expires ${seconds}s`);
      if (elements.length === 0) return [];
      return `add element ${tablePrefix(this.#options)} ${name} { ${elements.join(", ")} }\n`;
    });
    return baseRules(this.#options) + this.#takePrepared() + this.#rules.takeAll() + kept.join("");
  }

  #takePrepared(): string {
    const text = this.#prepared;
    this.#prepared = "";
    return text;
  }

  /** Returns the services that now may have a frontend. */
  *#claim(key: string, wanted: ServiceFrontends | undefined): Steps<ReadonlySet<string>> {
    const heirs = new Set<string>();
    const before = new Set((this.#services.get(key)?.frontends.frontends ?? []).map(frontendKey));
    const after = new Set((wanted?.frontends ?? []).map(frontendKey));
    for (const frontend of before) {
      yield;
      if (after.has(frontend)) continue;
      const owners = (this.#owners.get(frontend) ?? []).filter((owner) => owner !== key);
      if (owners[0] !== undefined) heirs.add(owners[0]);
      this.#setOwners(frontend, owners);
    }
    for (const frontend of after) {
      yield;
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

  *#replace(key: string, wanted: ServiceFrontends | undefined): Steps<void> {
    const old = this.#services.get(key)?.rules ?? noRules;
    const owned = wanted === undefined ? undefined : this.#ownedFrontends(key, wanted);
    const next = owned === undefined ? noRules : yield* serviceRules(owned, this.#options);
    if (wanted === undefined) this.#services.delete(key);
    else this.#services.set(key, { frontends: wanted, rules: next });
    this.#ensureCounts(next);
    for (const [name, value] of next.sets) this.#rules.addSet(name, value);
    for (const [name, rules] of next.chains) this.#rules.addChain(name, rules);
    for (const element of next.elements.values()) {
      this.#rules.addElement(element);
      yield;
    }
    // What the new rules share with the old ones stays, since its count of users does not reach 0.
    for (const id of old.elements.keys()) {
      this.#rules.releaseElement(id);
      yield;
    }
    for (const name of old.chains.keys()) this.#rules.releaseChain(name);
    for (const name of old.sets.keys()) this.#rules.releaseSet(name);
  }

  #ownedFrontends(key: string, wanted: ServiceFrontends): ServiceFrontends {
    const frontends = wanted.frontends.filter((frontend) => this.#owners.get(frontendKey(frontend))?.[0] === key);
    return frontends.length === wanted.frontends.length ? wanted : { ...wanted, frontends };
  }

  #ensureCounts({ counts }: ServiceRules): void {
    for (const { kind, count } of counts) {
      const id = `${kind} ${count}`;
      if (this.#counts.has(id)) continue;
      for (; this.#maps[kind] < count; this.#maps[kind]++) {
        this.#prepared += endpointMap(this.#options, kind, this.#maps[kind]);
      }
      this.#counts.add(id);
      this.#prepared += chooseChains(this.#options, kind, count);
    }
  }
}
