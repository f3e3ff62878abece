/**
 * Limits how fast pods are evicted from nodes that are not ready: one node at a time in each zone; more slowly or not
 * at all if most of a zone is down; and not at all if no node of any zone is ready, since then the control plane has
 * probably lost its network.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { defaultControllerOptions, type EvictionOptions } from "../controller-options.ts";
import { readyStatus } from "./condition-taints.ts";
import type { NodeMetrics } from "./node-metrics.ts";

/** Zones with fewer nodes that are not ready are not disrupted. */
const UNHEALTHY_MIN = 3;

const EXCLUDED = "node.kubernetes.io/exclude-disruption";

interface Zone {
  evictionsPerSecond: number;
  isDown: boolean;
  /** In the order of their requests. */
  readonly waiting: Set<string>;
  /** Monotonic time of the next eviction. */
  nextEvictionAt: number;
}

export class ZoneDisruption implements Disposable {
  readonly #clock: Clock;
  readonly #options: EvictionOptions;
  readonly #onAdmitted: (node: string) => void;
  readonly #metrics: NodeMetrics | undefined;
  readonly #zones = new Map<string, Zone>();
  readonly #timers: KeyTimers;
  readonly #admitted = new Set<string>();
  #allDown = false;

  /** `onTurn` is called when a waiting node may be evicted. */
  constructor(
    clock: Clock,
    onTurn: (node: string) => void,
    options = defaultControllerOptions.evictions,
    metrics?: NodeMetrics,
  ) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#options = options;
    this.#onAdmitted = onTurn;
    this.#timers = new KeyTimers(clock, (zone) => this.#admitNext(zone));
  }

  /** No node of any zone is ready, so evictions are suspended. */
  get allDown(): boolean {
    return this.#allDown;
  }

  /** Updates the state of all zones. Returns whether `allDown` changed. */
  update(nodes: Iterable<Node>): boolean {
    const began = this.#clock.monotonic();
    const { nodesPerSecond, nodesPerSecondDisrupted, disruptedShare, largeZoneNodes } = this.#options;
    const counts = new Map<string, { ready: number; notReady: number }>();
    for (const node of nodes) {
      if (node.metadata?.labels?.[EXCLUDED] !== undefined) continue;
      const zone = zoneOf(node);
      const count = counts.get(zone) ?? { ready: 0, notReady: 0 };
      counts.set(zone, count);
      if (readyStatus(node) === "True") count.ready++;
      else count.notReady++;
    }
    for (const name of this.#zones.keys()) if (!counts.has(name)) this.#zones.delete(name);
    for (const [name, { ready, notReady }] of counts) {
      const zone = this.#zone(name);
      const isDisrupted = notReady >= UNHEALTHY_MIN && notReady / (ready + notReady) >= disruptedShare;
      zone.isDown = ready === 0;
      const slow = ready + notReady > largeZoneNodes ? nodesPerSecondDisrupted : 0;
      zone.evictionsPerSecond = isDisrupted && !zone.isDown ? slow : nodesPerSecond;
    }
    const before = this.#allDown;
    this.#allDown = counts.size > 0 && [...this.#zones.values()].every(({ isDown }) => isDown);
    if (this.#allDown) {
      for (const zone of this.#zones.values()) zone.waiting.clear();
      this.#admitted.clear();
    } else for (const name of this.#zones.keys()) this.#admitNext(name);
    this.#metrics?.recordZones(counts, (this.#clock.monotonic() - began) / 1000);
    return before !== this.#allDown;
  }

  /** Whether the node's pods may be evicted; otherwise it is queued. */
  requestEviction(node: Node): boolean {
    const name = node.metadata?.name ?? "";
    if (this.#admitted.has(name)) return true;
    if (this.#allDown) return false;
    const zone = zoneOf(node);
    this.#zone(zone).waiting.add(name);
    this.#admitNext(zone);
    return this.#admitted.has(name);
  }

  /** The node is ready again, or was deleted. */
  withdraw(name: string): void {
    this.#admitted.delete(name);
    for (const { waiting } of this.#zones.values()) waiting.delete(name);
  }

  [Symbol.dispose](): void {
    this.#timers[Symbol.dispose]();
  }

  #zone(name: string): Zone {
    let zone = this.#zones.get(name);
    if (zone === undefined) {
      zone = { evictionsPerSecond: this.#options.nodesPerSecond, isDown: false, waiting: new Set(), nextEvictionAt: 0 };
      this.#zones.set(name, zone);
    }
    return zone;
  }

  #admitNext(name: string): void {
    const zone = this.#zones.get(name);
    if (zone === undefined || zone.evictionsPerSecond === 0 || this.#allDown) return;
    const [next] = zone.waiting;
    if (next === undefined) return;
    const now = this.#clock.monotonic();
    if (now >= zone.nextEvictionAt) {
      zone.waiting.delete(next);
      this.#admitted.add(next);
      zone.nextEvictionAt = now + 1000 / zone.evictionsPerSecond;
      this.#onAdmitted(next);
    }
    if (zone.waiting.size > 0) this.#timers.set(name, zone.nextEvictionAt - now);
  }
}

/** `region/zone`; a slash for a node without both. */
export function zoneOf({ metadata }: Node): string {
  const { labels = {} } = metadata ?? {};
  return `${labels["topology.kubernetes.io/region"] ?? ""}/${labels["topology.kubernetes.io/zone"] ?? ""}`;
}
