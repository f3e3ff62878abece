/** Which nodes have not been heard of for too long: neither by their status nor by their lease. */
import type { Lease } from "../../api/coordination/lease/schema.ts";
import type { Node, NodeCondition } from "../../api/core/node/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";

/** How long a node may be silent, and a new one that has never said anything. */
const GRACE_MS = 50_000;
const STARTUP_GRACE_MS = 60_000;

/**
 * Times are those at which a sign was seen here, since clocks of nodes may be wrong. So after a start every node that
 * was ready has its whole grace to be heard of again.
 */
export class Heartbeats implements Disposable {
  readonly #clock: Clock;
  readonly #due: KeyTimers;
  /** The last heartbeat in each node's status; empty for a node that has never said whether it is ready. */
  readonly #heartbeats = new Map<string, string>();
  readonly #renewals = new Map<string, string>();

  /** `onSilent` is told of a node that has been silent too long; once, until it is heard of again. */
  constructor(clock: Clock, onSilent: (node: string) => void) {
    this.#clock = clock;
    this.#due = new KeyTimers(clock, onSilent);
  }

  isSilent(node: string): boolean {
    return this.#heartbeats.has(node) && !this.#due.has(node);
  }

  status({ metadata, status }: Node): void {
    const name = metadata?.name ?? "";
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const beat = ready === undefined ? "" : (ready.lastHeartbeatTime ?? "-");
    const known = this.#heartbeats.get(name);
    if (known === beat) return;
    this.#heartbeats.set(name, beat);
    if (ready !== undefined) this.#due.set(name, GRACE_MS);
    else if (known === undefined) {
      const created = Date.parse(metadata?.creationTimestamp ?? "");
      const age = Number.isNaN(created) ? 0 : Math.max(0, this.#clock.now() - created);
      this.#due.set(name, STARTUP_GRACE_MS - age);
    }
  }

  lease({ metadata, spec }: Lease): void {
    const name = metadata?.name ?? "";
    const { renewTime = "" } = spec ?? {};
    if (this.#renewals.get(name) === renewTime) return;
    this.#renewals.set(name, renewTime);
    const beat = this.#heartbeats.get(name);
    if (beat !== undefined) this.#due.set(name, beat === "" ? STARTUP_GRACE_MS : GRACE_MS);
  }

  forgetLease(node: string): void {
    this.#renewals.delete(node);
  }

  forget(node: string): void {
    this.#due.delete(node);
    this.#heartbeats.delete(node);
  }

  [Symbol.dispose](): void {
    this.#due[Symbol.dispose]();
  }
}

const HEALTH = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/** What is said of a node in the place of its agent; undefined when that is said already. */
export function silentConditions(node: Node, now: string): readonly NodeCondition[] | undefined {
  const conditions = node.status?.conditions ?? [];
  const changed: NodeCondition[] = [];
  for (const type of HEALTH) {
    const known = conditions.find((condition) => condition.type === type);
    if (known === undefined) {
      changed.push({
        type,
        status: "Unknown",
        reason: "NodeStatusNeverUpdated",
        message: "Kubelet never posted node status.",
        ...(node.metadata?.creationTimestamp === undefined
          ? {}
          : { lastHeartbeatTime: node.metadata.creationTimestamp }),
        lastTransitionTime: now,
      });
    } else if (known.status !== "Unknown") {
      changed.push({
        ...known,
        status: "Unknown",
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
        lastTransitionTime: now,
      });
    }
  }
  return changed.length === 0 ? undefined : changed;
}
