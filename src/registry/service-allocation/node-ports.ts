/**
 * Ports that services have on every node. Who has which is what the services themselves say; nothing else is to be
 * repaired. While a service is being written a key in the store says which it takes, to other servers over that store:
 * nobody can create the same key twice, and what a server leaves behind that dies goes by itself.
 */
import type { Service } from "../../api/core/service/schema.ts";
import { mayHaveNodePorts } from "../../api/core/service/types.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { type Revision, StoreError } from "../../storage/store.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { metadataOf } from "../write/object-metadata.ts";

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The lower end is left to those who ask for a port by its number, as long as there are others. */
const STATIC_STEP = 32;
const STATIC_MIN = 16;
const STATIC_MAX = 128;

/** Longer than any write may take. */
const RESERVED_SECONDS = 120;

export class NodePorts {
  readonly #services: Registry<Service>;
  readonly #range: PortRange;
  readonly #random: RandomSource;
  /** Ports of writes under way (`undefined`), and of writes that the cache may not show yet. */
  readonly #reserved = new Map<number, Revision | undefined>();
  /** What others are told of the former: when the key was written. */
  readonly #claimed = new Map<number, Revision>();

  constructor(services: Registry<Service>, range: PortRange, random: RandomSource) {
    this.#services = services;
    this.#range = range;
    this.#random = random;
  }

  /**
   * What one write takes, which `choose` says: it is called again with what other servers have taken meanwhile. Shows
   * all services that were written before. Throws what `choose` throws.
   */
  async allocate<T>(
    scope: Pick<Scope, "signal">,
    dryRun: boolean,
    choose: (taking: PortAllocation) => T,
  ): Promise<readonly [chosen: T, taking: PortAllocation]> {
    const elsewhere: number[] = [];
    for (;;) {
      const used = await this.#usedPorts(scope);
      for (const port of [...this.#reserved.keys(), ...elsewhere]) used.add(port);
      const taking = new PortAllocation(this.#range, this.#random, used, dryRun ? undefined : this.#reserved);
      try {
        const chosen = choose(taking);
        const lost = dryRun ? [] : await this.#claim(scope, taking.allocated);
        if (lost.length === 0) return [chosen, taking];
        elsewhere.push(...lost);
      } catch (error) {
        await this.rollback(taking);
        throw error;
      }
      await this.rollback(taking);
    }
  }

  /** The service stands in the store: soon the cache shows its ports, here and elsewhere. Does not throw. */
  async commit({ allocated: taken }: PortAllocation, written: Service): Promise<void> {
    const revision = Number(metadataOf(written).resourceVersion) as Revision;
    for (const port of taken) if (this.#reserved.has(port)) this.#reserved.set(port, revision);
    await this.#unclaim(taken);
  }

  /** Does not throw. */
  async rollback({ allocated: taken }: PortAllocation): Promise<void> {
    await this.#unclaim(taken);
    for (const port of taken) this.#reserved.delete(port);
  }

  /** By services. */
  async #usedPorts(scope: Pick<Scope, "signal">): Promise<Set<number>> {
    const cache = await this.#services.freshCache(scope);
    for (const [port, revision] of this.#reserved) {
      if (revision !== undefined && cache.hasReached(revision)) this.#reserved.delete(port);
    }
    const used = new Set<number>();
    for (const { object } of cache.list(this.#services.objects.prefix()).items) addPorts(object, used);
    return used;
  }

  /** The ports that another server was quicker to take. */
  async #claim(scope: Pick<Scope, "signal">, ports: readonly number[]): Promise<readonly number[]> {
    if (ports.length === 0) return [];
    const { store } = this.#services.deps;
    const lost: number[] = [];
    for (const port of ports) {
      try {
        const options = { ttlSeconds: RESERVED_SECONDS };
        this.#claimed.set(port, await store.create(this.#key(port), new Uint8Array(), options));
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "exists") throw error;
        lost.push(port);
      }
    }
    // Another's write may have ended between the look at the services and the claim.
    const used = await this.#usedPorts(scope);
    return [...lost, ...ports.filter((port) => used.has(port))];
  }

  async #unclaim(ports: readonly number[]): Promise<void> {
    const { store } = this.#services.deps;
    for (const port of ports) {
      const revision = this.#claimed.get(port);
      this.#claimed.delete(port);
      // What cannot be deleted goes by itself.
      if (revision !== undefined) await store.delete(this.#key(port), revision).catch(() => {});
    }
  }

  #key(port: number): string {
    return `${this.#services.deps.prefix}/ranges/servicenodeports/${port}`;
  }
}

/** Looks at all services, most of which have none: nothing is made on the way. */
function addPorts({ spec }: Service, used: Set<number>): void {
  if (spec === undefined || !mayHaveNodePorts(spec)) return;
  if (spec.healthCheckNodePort) used.add(spec.healthCheckNodePort);
  for (const { nodePort } of spec.ports ?? []) if (nodePort) used.add(nodePort);
}

/** A port cannot be had; the message says why, in Kubernetes' words. */
export class PortUnavailable extends Error {}

/** Takes ports without waiting in between, so that no two writes take the same. */
export class PortAllocation {
  readonly #range: PortRange;
  readonly #random: RandomSource;
  readonly #used: Set<number>;
  readonly #reserved: Map<number, Revision | undefined> | undefined;
  readonly allocated: number[] = [];

  /** Without `reserved` nobody else hears of what is taken. */
  constructor(
    range: PortRange,
    random: RandomSource,
    used: Set<number>,
    reserved: Map<number, Revision | undefined> | undefined,
  ) {
    this.#range = range;
    this.#random = random;
    this.#used = used;
    this.#reserved = reserved;
  }

  /** Throws `PortUnavailable`. */
  allocate(port: number): void {
    const { first, last } = this.#range;
    if (this.#reserved !== undefined && (port < first || port > last)) {
      const why = `The range of valid ports is ${first}-${last}`;
      throw new PortUnavailable(`provided port is not in the valid range. ${why}`);
    }
    if (this.#used.has(port)) throw new PortUnavailable("provided port is already allocated");
    this.#mark(port);
  }

  /** Throws `PortUnavailable`. */
  allocateNext(): number {
    const { first, last } = this.#range;
    const size = last - first + 1;
    const band = Math.min(STATIC_MAX, Math.max(STATIC_MIN, Math.floor(size / STATIC_STEP)));
    const reserved = size > STATIC_MIN ? band : 0;
    const port = this.#findFree(first + reserved, last) ?? this.#findFree(first, first + reserved - 1);
    if (port === undefined) throw new PortUnavailable("range is full");
    this.#mark(port);
    return port;
  }

  /** Walks round from anywhere between the two. */
  #findFree(first: number, last: number): number | undefined {
    const size = last - first + 1;
    const start = Math.floor(this.#random.fraction() * size);
    for (let step = 0; step < size; step++) {
      const port = first + ((start + step) % size);
      if (!this.#used.has(port)) return port;
    }
    return undefined;
  }

  #mark(port: number): void {
    this.#used.add(port);
    this.allocated.push(port);
    this.#reserved?.set(port, undefined);
  }
}
