/**
 * How fast nodes that are not ready may have their pods driven off. One node at a time in each zone; slowly, or not at
 * all, where most of a zone is down; and not at all where no node of any zone is ready: then it is more likely that the
 * control plane has lost its network than that the whole cluster died.
 */
import type { Node } from "../../api/core/node/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { readyStatus } from "./condition-taints.ts";

/** Kubernetes' defaults: nodes a second, and what counts as most of a zone, and as a large one. */
const RATE = 0.1;
const RATE_DISRUPTED = 0.01;
const UNHEALTHY_SHARE = 0.55;
const UNHEALTHY_MIN = 3;
const LARGE_ZONE = 51;

const EXCLUDED = "node.kubernetes.io/exclude-disruption";

interface Zone {
  rate: number;
  isDown: boolean;
  /** In the order in which they asked. */
  readonly waiting: Set<string>;
  /** When the next may have its turn, on the monotonic clock. */
  nextAt: number;
}

export class Disruption implements Disposable {
  readonly #clock: Clock;
  readonly #onTurn: (node: string) => void;
  readonly #zones = new Map<string, Zone>();
  readonly #turns: KeyTimers;
  readonly #admitted = new Set<string>();
  #allDown = false;

  /** `onTurn` is told of a node whose pods may now be driven off. */
  constructor(clock: Clock, onTurn: (node: string) => void) {
    this.#clock = clock;
    this.#onTurn = onTurn;
    this.#turns = new KeyTimers(clock, (zone) => this.#pump(zone));
  }

  /** No node of any zone is ready: nobody's pods are to be driven off. */
  get allDown(): boolean {
    return this.#allDown;
  }

  /** Takes the nodes as they are now. Returns whether `allDown` has changed. */
  update(nodes: Iterable<Node>): boolean {
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
      const isDisrupted = notReady >= UNHEALTHY_MIN && notReady / (ready + notReady) >= UNHEALTHY_SHARE;
      zone.isDown = ready === 0;
      const slow = ready + notReady >= LARGE_ZONE ? RATE_DISRUPTED : 0;
      zone.rate = isDisrupted && !zone.isDown ? slow : RATE;
    }
    const before = this.#allDown;
    this.#allDown = counts.size > 0 && [...this.#zones.values()].every(({ isDown }) => isDown);
    if (this.#allDown) {
      for (const zone of this.#zones.values()) zone.waiting.clear();
      this.#admitted.clear();
    } else for (const name of this.#zones.keys()) this.#pump(name);
    return before !== this.#allDown;
  }

  /** Whether the node's pods may be driven off; when not, it waits for its turn. */
  mayDrive(node: Node): boolean {
    const name = node.metadata?.name ?? "";
    if (this.#admitted.has(name)) return true;
    if (this.#allDown) return false;
    const zone = zoneOf(node);
    this.#zone(zone).waiting.add(name);
    this.#pump(zone);
    return this.#admitted.has(name);
  }

  /** The node is ready again, or gone. */
  withdraw(name: string): void {
    this.#admitted.delete(name);
    for (const { waiting } of this.#zones.values()) waiting.delete(name);
  }

  [Symbol.dispose](): void {
    this.#turns[Symbol.dispose]();
  }

  #zone(name: string): Zone {
    let zone = this.#zones.get(name);
    if (zone === undefined) {
      zone = { rate: RATE, isDown: false, waiting: new Set(), nextAt: 0 };
      this.#zones.set(name, zone);
    }
    return zone;
  }

  #pump(name: string): void {
    const zone = this.#zones.get(name);
    if (zone === undefined || zone.rate === 0 || this.#allDown) return;
    const [next] = zone.waiting;
    if (next === undefined) return;
    const now = this.#clock.monotonic();
    if (now >= zone.nextAt) {
      zone.waiting.delete(next);
      this.#admitted.add(next);
      zone.nextAt = now + 1000 / zone.rate;
      this.#onTurn(next);
    }
    if (zone.waiting.size > 0) this.#turns.set(name, zone.nextAt - now);
  }
}

function zoneOf({ metadata }: Node): string {
  const { labels = {} } = metadata ?? {};
  return `${labels["topology.kubernetes.io/region"] ?? ""}/${labels["topology.kubernetes.io/zone"] ?? ""}`;
}
