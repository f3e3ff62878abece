/** Detects nodes without heartbeats: neither their status nor their lease is updated. */
import type { Lease } from "../../api/coordination/lease/schema.ts";
import type { Node, NodeCondition } from "../../api/core/node/schema.ts";
import type { Clock } from "../../std/time/clock.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";

export interface GracePeriods {
  readonly graceMs: number;
  /** Of a new node without a heartbeat. */
  readonly startupGraceMs: number;
}

/**
 * Time is measured from the observation of a heartbeat, since clocks of nodes may differ. After a start, each node has
 * the full grace period.
 */
export class Heartbeats implements Disposable {
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #startupGraceMs: number;
  readonly #deadlines: KeyTimers;
  /** The last heartbeat in the node's status; empty for a node that never reported its readiness. */
  readonly #heartbeats = new Map<string, string>();
  readonly #renewals = new Map<string, string>();

  /** `onSilent` is called once when a node exceeds its grace period. */
  constructor(clock: Clock, { graceMs, startupGraceMs }: GracePeriods, onSilent: (node: string) => void) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    this.#startupGraceMs = startupGraceMs;
    this.#deadlines = new KeyTimers(clock, onSilent);
  }

  isSilent(node: string): boolean {
    return this.#heartbeats.has(node) && !this.#deadlines.has(node);
  }

  observeStatus({ metadata, status }: Node): void {
    const name = metadata?.name ?? "";
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const beat = ready === undefined ? "" : (ready.lastHeartbeatTime ?? "-");
    const known = this.#heartbeats.get(name);
    if (known === beat) return;
    this.#heartbeats.set(name, beat);
    if (ready !== undefined) this.#deadlines.set(name, this.#graceMs);
    else if (known === undefined) {
      const created = Date.parse(metadata?.creationTimestamp ?? "");
      const age = Number.isNaN(created) ? 0 : Math.max(0, this.#clock.now() - created);
      this.#deadlines.set(name, this.#startupGraceMs - age);
    }
  }

  observeLease({ metadata, spec }: Lease): void {
    const name = metadata?.name ?? "";
    const { renewTime = "" } = spec ?? {};
    if (this.#renewals.get(name) === renewTime) return;
    this.#renewals.set(name, renewTime);
    const beat = this.#heartbeats.get(name);
    if (beat !== undefined) this.#deadlines.set(name, beat === "" ? this.#startupGraceMs : this.#graceMs);
  }

  forgetLease(node: string): void {
    this.#renewals.delete(node);
  }

  forget(node: string): void {
    this.#deadlines.delete(node);
    this.#heartbeats.delete(node);
  }

  [Symbol.dispose](): void {
    this.#deadlines[Symbol.dispose]();
  }
}

const CONDITION_TYPES = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] as const;

/** The conditions to set for a node without heartbeats; undefined if they are set. */
export function unknownConditions(node: Node, now: string): readonly NodeCondition[] | undefined {
  const conditions = node.status?.conditions ?? [];
  const changed: NodeCondition[] = [];
  for (const type of CONDITION_TYPES) {
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
