/**
 * Node ports of services. A port is in use when a service specifies it. During a write a key in the store reserves the
 * port against other servers over the same store; the key of a server that dies expires.
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

/** The static range at the lower end: allocated dynamically only when all other ports are in use. */
const STATIC_STEP = 32;
const STATIC_MIN = 16;
const STATIC_MAX = 128;

/** Time to live of a reservation; longer than the timeout of any write. */
const RESERVED_SECONDS = 120;

/** How a port was chosen: by the client, or by the server. */
export type PortScope = "static" | "dynamic";

export interface PortObserver {
  countPort(scope: PortScope): void;
  countPortError(scope: PortScope): void;
}

export class NodePorts {
  readonly #services: Registry<Service>;
  readonly #range: PortRange;
  readonly #random: RandomSource;
  readonly #observer: PortObserver | undefined;
  /** Ports of writes in progress (`undefined`), and of stored services that the cache may not have yet. */
  readonly #reserved = new Map<number, Revision | undefined>();
  /** The reservations of the former in the store, with the revision of the key. */
  readonly #reservations = new Map<number, Revision>();

  constructor(services: Registry<Service>, range: PortRange, random: RandomSource, observer?: PortObserver) {
    this.#services = services;
    this.#range = range;
    this.#random = random;
    this.#observer = observer;
  }

  /** The ports that these services use, and how many there are. */
  usage(services: readonly Service[]): { readonly used: number; readonly size: number } {
    const { first, last } = this.#range;
    const ports = new Set<number>();
    for (const service of services) addPorts(service, ports);
    return { used: [...ports].filter((port) => port >= first && port <= last).length, size: last - first + 1 };
  }

  /**
   * Allocates the ports that `choose` takes; calls it again when another server reserved one of them. The allocation
   * excludes the ports of all stored services. Throws what `choose` throws.
   */
  async allocate<T>(
    scope: Pick<Scope, "signal">,
    dryRun: boolean,
    choose: (allocation: PortAllocation) => T,
  ): Promise<readonly [chosen: T, allocation: PortAllocation]> {
    const reservedByOthers: number[] = [];
    for (;;) {
      const used = await this.#usedPorts(scope);
      for (const port of [...this.#reserved.keys(), ...reservedByOthers]) used.add(port);
      const allocation = new PortAllocation(this.#range, this.#random, used, dryRun ? undefined : this.#reserved);
      try {
        const chosen = choose(allocation);
        const lost = dryRun ? [] : await this.#reserve(scope, allocation.allocated);
        if (lost.length === 0) {
          if (!dryRun) for (const each of allocation.scopes) this.#observer?.countPort(each);
          return [chosen, allocation];
        }
        reservedByOthers.push(...lost);
      } catch (error) {
        if (allocation.failed !== undefined && !dryRun) this.#observer?.countPortError(allocation.failed);
        await this.rollback(allocation);
        throw error;
      }
      await this.rollback(allocation);
    }
  }

  /** The service is stored: the caches of all servers soon have its ports. Does not throw. */
  async commit({ allocated }: PortAllocation, written: Service): Promise<void> {
    const revision = Number(metadataOf(written).resourceVersion) as Revision;
    for (const port of allocated) if (this.#reserved.has(port)) this.#reserved.set(port, revision);
    await this.#unreserve(allocated);
  }

  /** Does not throw. */
  async rollback({ allocated }: PortAllocation): Promise<void> {
    await this.#unreserve(allocated);
    for (const port of allocated) this.#reserved.delete(port);
  }

  /** Node ports of all services. */
  async #usedPorts(scope: Pick<Scope, "signal">): Promise<Set<number>> {
    const cache = await this.#services.freshCache(scope);
    for (const [port, revision] of this.#reserved) {
      if (revision !== undefined && cache.hasReached(revision)) this.#reserved.delete(port);
    }
    const used = new Set<number>();
    for (const { object } of cache.list(this.#services.objects.prefix()).items) addPorts(object, used);
    return used;
  }

  /** Reserves the ports; resolves with those that another server reserved first. */
  async #reserve(scope: Pick<Scope, "signal">, ports: readonly number[]): Promise<readonly number[]> {
    if (ports.length === 0) return [];
    const { store } = this.#services.deps;
    const lost: number[] = [];
    for (const port of ports) {
      try {
        const options = { ttlSeconds: RESERVED_SECONDS };
        this.#reservations.set(port, await store.create(this.#key(port), new Uint8Array(), options));
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== "exists") throw error;
        lost.push(port);
      }
    }
    // The write of another server may have ended between the read of the services and the reservation.
    const used = await this.#usedPorts(scope);
    return [...lost, ...ports.filter((port) => used.has(port))];
  }

  async #unreserve(ports: readonly number[]): Promise<void> {
    const { store } = this.#services.deps;
    for (const port of ports) {
      const revision = this.#reservations.get(port);
      this.#reservations.delete(port);
      // A reservation that cannot be deleted expires.
      if (revision !== undefined) await store.delete(this.#key(port), revision).catch(() => {});
    }
  }

  #key(port: number): string {
    return `${this.#services.deps.prefix}/ranges/servicenodeports/${port}`;
  }
}

/** Called for all services, most of which have no node ports: allocates no memory for them. */
function addPorts({ spec }: Service, used: Set<number>): void {
  if (spec === undefined || !mayHaveNodePorts(spec)) return;
  if (spec.healthCheckNodePort) used.add(spec.healthCheckNodePort);
  for (const { nodePort } of spec.ports ?? []) if (nodePort) used.add(nodePort);
}

/** The port is not available; the message is Kubernetes'. */
export class PortUnavailable extends Error {}

/** The ports of one write. Synchronous, so that no two writes allocate the same port. */
export class PortAllocation {
  readonly #range: PortRange;
  readonly #random: RandomSource;
  readonly #used: Set<number>;
  readonly #reserved: Map<number, Revision | undefined> | undefined;
  readonly allocated: number[] = [];
  /** How each of them was chosen. */
  readonly scopes: PortScope[] = [];
  /** The one that was not available, after which there are no further ones. */
  failed: PortScope | undefined;

  /** Without `reserved`, as in a dry run, other writes ignore the allocated ports. */
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

  /** Allocates this port. Throws `PortUnavailable`. */
  allocate(port: number): void {
    const { first, last } = this.#range;
    if (this.#reserved !== undefined && (port < first || port > last)) {
      const why = `The range of valid ports is ${first}-${last}`;
      throw this.#fail("static", `provided port is not in the valid range. ${why}`);
    }
    if (this.#used.has(port)) throw this.#fail("static", "provided port is already allocated");
    this.#mark(port, "static");
  }

  /** Allocates any free port. Throws `PortUnavailable`. */
  allocateNext(): number {
    const { first, last } = this.#range;
    const size = last - first + 1;
    const band = Math.min(STATIC_MAX, Math.max(STATIC_MIN, Math.floor(size / STATIC_STEP)));
    const reserved = size > STATIC_MIN ? band : 0;
    const port = this.#findFree(first + reserved, last) ?? this.#findFree(first, first + reserved - 1);
    if (port === undefined) throw this.#fail("dynamic", "range is full");
    this.#mark(port, "dynamic");
    return port;
  }

  /** Searches from a random port, and wraps around. */
  #findFree(first: number, last: number): number | undefined {
    const size = last - first + 1;
    const start = Math.floor(this.#random.fraction() * size);
    for (let step = 0; step < size; step++) {
      const port = first + ((start + step) % size);
      if (!this.#used.has(port)) return port;
    }
    return undefined;
  }

  #fail(scope: PortScope, message: string): PortUnavailable {
    this.failed = scope;
    return new PortUnavailable(message);
  }

  #mark(port: number, scope: PortScope): void {
    this.#used.add(port);
    this.allocated.push(port);
    this.scopes.push(scope);
    this.#reserved?.set(port, undefined);
  }
}
