/**
 * Node ports of services. The bitmap in the store has those of all servers over it, also Kubernetes'; a port that a
 * stored service specifies is in use too.
 */
import type { Service } from "../../api/core/service/schema.ts";
import { mayHaveNodePorts } from "../../api/core/service/types.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { type Bits, RangeBitmap, type StoredBits } from "./range-bitmap.ts";
import type { RepairResult } from "./repair.ts";
import { type LeakedBits, repairBits, type UsedBits } from "./repair-bitmaps.ts";

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The static range at the lower end: allocated dynamically only when all other ports are in use. */
const STATIC_STEP = 32;
const STATIC_MIN = 16;
const STATIC_MAX = 128;

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
  readonly #bitmap: RangeBitmap;
  readonly #leaked: LeakedBits = new Map();

  constructor(services: Registry<Service>, range: PortRange, random: RandomSource, observer?: PortObserver) {
    this.#services = services;
    this.#range = range;
    this.#random = random;
    this.#observer = observer;
    const { first, last } = range;
    const names = { name: "servicenodeports", resource: "servicenodeportallocations" };
    this.#bitmap = new RangeBitmap({ ...names, range: `${first}-${last}`, size: last - first + 1 }, services.deps);
  }

  /** The ports that these services use, and how many there are. */
  usage(services: readonly Service[]): { readonly used: number; readonly size: number } {
    const { first, last } = this.#range;
    const ports = new Set(services.flatMap(nodePortsOfService));
    return { used: [...ports].filter((port) => port >= first && port <= last).length, size: last - first + 1 };
  }

  /**
   * Allocates the ports that `choose` takes; calls it again when another server was first. Throws what `choose` throws.
   */
  async allocate<T>(
    scope: Pick<Scope, "signal">,
    dryRun: boolean,
    choose: (allocation: PortAllocation) => T,
  ): Promise<readonly [chosen: T, allocation: PortAllocation]> {
    // Before the bits: a service that is stored after this read has set them.
    const ofServices = await this.#portsOfServices(scope);
    const attempt = (stored: StoredBits | undefined): readonly [T, PortAllocation, Bits] => {
      const bits = stored?.isCurrent === true ? stored.bits : this.#toBits(ofServices);
      const used = new Set(ofServices);
      for (const bit of bits) used.add(this.#range.first + bit);
      const allocation = new PortAllocation(this.#range, this.#random, used, dryRun);
      try {
        const chosen = choose(allocation);
        for (const port of allocation.allocated) bits.add(port - this.#range.first);
        return [chosen, allocation, bits];
      } catch (error) {
        if (allocation.failed !== undefined && !dryRun) this.#observer?.countPortError(allocation.failed);
        throw error;
      }
    };
    if (dryRun) {
      const [chosen, allocation] = attempt(await this.#bitmap.read());
      return [chosen, allocation];
    }
    let last: readonly [T, PortAllocation, Bits] | undefined;
    await this.#bitmap.update((stored) => {
      last = attempt(stored);
      return last[2];
    });
    const [chosen, allocation] = last!;
    for (const each of allocation.scopes) this.#observer?.countPort(each);
    return [chosen, allocation];
  }

  /** No service has them any more. */
  async release(ports: readonly number[]): Promise<void> {
    const { first, last } = this.#range;
    const held = ports.filter((port) => port >= first && port <= last);
    if (held.length === 0) return;
    await this.#bitmap.update((stored) => {
      const bits = stored?.bits ?? this.#bitmap.empty();
      if (stored?.isCurrent === true) for (const port of held) bits.delete(port - first);
      return bits;
    });
  }

  /** Sets the ports of stored services, and clears others when it finds them for the third time. */
  async repair(scope: Scope, log: Logger): Promise<RepairResult> {
    const replace = async (rebuild: (stored: Bits) => Promise<Bits>): Promise<void> =>
      await this.#bitmap.replace((stored) => rebuild(stored?.bits ?? this.#bitmap.empty()));
    return await repairBits({ replace, usedBits: (stored) => this.#usedBits(stored, scope, log) }, this.#leaked);
  }

  async #usedBits(stored: Bits, scope: Scope, log: Logger): Promise<UsedBits> {
    const { first, last } = this.#range;
    const used = this.#bitmap.empty();
    let allocated = 0;
    const cache = await this.#services.freshCache(scope);
    for (const { object } of cache.list(this.#services.objects.prefix()).items) {
      for (const port of new Set(nodePortsOfService(object))) {
        const { name: service = "", namespace = "" } = object.metadata ?? {};
        const bit = port - first;
        if (port < first || port > last) {
          log.warn("The node port is not within the port range, please recreate the service", {
            port,
            service,
            namespace,
          });
        } else if (used.has(bit)) {
          log.warn("The node port was assigned to multiple services, please recreate the service", {
            port,
            service,
            namespace,
          });
        } else {
          used.add(bit);
          if (!stored.has(bit)) allocated++;
        }
      }
    }
    return { used, allocated };
  }

  async #portsOfServices(scope: Pick<Scope, "signal">): Promise<ReadonlySet<number>> {
    const cache = await this.#services.freshCache(scope);
    const ports = new Set<number>();
    for (const { object } of cache.list(this.#services.objects.prefix()).items) addPorts(object, ports);
    return ports;
  }

  #toBits(ports: Iterable<number>): Bits {
    const { first, last } = this.#range;
    const bits = this.#bitmap.empty();
    for (const port of ports) if (port >= first && port <= last) bits.add(port - first);
    return bits;
  }
}

/** Those of its ports, and of its health check; each once. */
export function nodePortsOfService(service: Service): readonly number[] {
  const ports = new Set<number>();
  addPorts(service, ports);
  return [...ports];
}

/** Called for all services, most of which have no node ports: allocates no memory for them. */
function addPorts({ spec }: Service, ports: Set<number>): void {
  if (spec === undefined || !mayHaveNodePorts(spec)) return;
  if (spec.healthCheckNodePort) ports.add(spec.healthCheckNodePort);
  for (const { nodePort } of spec.ports ?? []) if (nodePort) ports.add(nodePort);
}

/** The port is not available; the message is Kubernetes'. */
export class PortUnavailable extends Error {}

/** The ports of one write. */
export class PortAllocation {
  readonly #range: PortRange;
  readonly #random: RandomSource;
  readonly #used: Set<number>;
  readonly #isDryRun: boolean;
  readonly allocated: number[] = [];
  /** How each of them was chosen. */
  readonly scopes: PortScope[] = [];
  /** The one that was not available, after which there are no further ones. */
  failed: PortScope | undefined;

  constructor(range: PortRange, random: RandomSource, used: Set<number>, isDryRun: boolean) {
    this.#range = range;
    this.#random = random;
    this.#used = used;
    this.#isDryRun = isDryRun;
  }

  /** Allocates this port. Throws `PortUnavailable`. */
  allocate(port: number): void {
    const { first, last } = this.#range;
    if (!this.#isDryRun && (port < first || port > last)) {
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
  }
}
