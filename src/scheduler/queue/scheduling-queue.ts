/**
 * Pods that wait to be scheduled. As in Kubernetes there are three parts:
 *
 *     active: to be scheduled now, in the order of priority
 *     backoff: to be scheduled when their back-off is over, or earlier when no pod is active
 *     unschedulable: rejected, until an event may make them schedulable, or gated
 *
 * A pod is in one part or in flight. All parts are bounded by the number of pending pods.
 */
import type { Pod } from "../../api/core/pod/schema.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { PodInfo, uidOf } from "../cache/pod-info.ts";
import { type ClusterEvent, labelOf } from "../framework/cluster-event.ts";
import type { Rejection } from "../framework/rejection.ts";
import { Heap } from "./heap.ts";
import { InFlightEvents } from "./in-flight-events.ts";
import { isScheduledBefore, type QueuedPod } from "./queued-pod.ts";

/** Kubernetes' names of the events of pods that have no node. */
const POD_ADDED = "UnschedulablePodAdd";
const POD_UPDATED = "UnschedulablePodUpdate";

export interface SchedulingQueueOptions {
  readonly clock: Clock;
  /** The back-off after the first attempt, in milliseconds; it doubles with each. */
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Pods that no event concerns are retried after this time; it ends the wait for an event that hints miss. */
  readonly unschedulableMaxMs: number;
  readonly preEnqueue: (pod: PodInfo) => Rejection | undefined;
  /** Which plugins of the pod's profile consider that the event may make it schedulable. */
  readonly interestedPlugins: (pod: PodInfo, event: ClusterEvent, rejectedBy: ReadonlySet<string>) => readonly string[];
  /** Whether any plugin has registered the event. */
  readonly isRegistered: (event: ClusterEvent) => boolean;
  /** Called when a pod is added to a part of the queue; `event` is what caused it. */
  readonly onQueued?: ((part: "active" | "backoff" | "unschedulable", event: string) => void) | undefined;
  /** Called when the pods that an event concerns have been queued. */
  readonly onEventHandled?: ((event: string, milliseconds: number) => void) | undefined;
  /** Pods without active ones before them do not wait for the end of their back-off. */
  readonly popsFromBackoff: boolean;
}

/** The name in `rejectedBy` of extenders, which register no events: any event retries the pod. */
export const EXTENDER = "Extender";

/** The plugin whose pods only a change of themselves releases. */
const SCHEDULING_GATES = "SchedulingGates";

/** Pods whose back-off ends within the same window are ordered as active ones. */
const BACKOFF_WINDOW_MS = 1000;

type Requeue = "never" | "afterBackoff" | "now";

export class SchedulingQueue implements Disposable {
  readonly #options: SchedulingQueueOptions;
  readonly #active = new Heap<QueuedPod>(keyOf, isScheduledBefore);
  readonly #backoff: Heap<QueuedPod>;
  readonly #unschedulable = new Map<string, QueuedPod>();
  readonly #inFlight = new InFlightEvents();
  readonly #wakeup = new Wakeup();
  #sequence = 0;
  #backoffTimer: { readonly at: number; readonly timer: Timer } | undefined;
  #leftoverTimer: Timer | undefined;

  constructor(options: SchedulingQueueOptions) {
    this.#options = options;
    this.#backoff = new Heap(keyOf, (a, b) => this.#backoffEnd(a) < this.#backoffEnd(b));
  }

  get sizes(): Readonly<Record<"active" | "backoff" | "unschedulable" | "gated", number>> {
    let gated = 0;
    for (const { gatedBy } of this.#unschedulable.values()) if (gatedBy !== undefined) gated++;
    const unschedulable = this.#unschedulable.size - gated;
    return { active: this.#active.size, backoff: this.#backoff.size, unschedulable, gated };
  }

  /** The pods that a plugin rejected in their last attempt, by plugin and profile. */
  *rejections(): Generator<readonly [plugin: string, profile: string]> {
    for (const queued of [...this.#unschedulable.values(), ...this.#backoff.values()]) {
      const profile = queued.info.pod.spec?.schedulerName ?? "default-scheduler";
      for (const plugin of queued.rejectedBy) yield [plugin, profile];
    }
  }

  inFlightCounts(): ReadonlyMap<string, number> {
    return this.#inFlight.counts();
  }

  add(pod: Pod): void {
    if (this.#find(uidOf(pod)) !== undefined || this.#inFlight.has(uidOf(pod))) return;
    const queued: QueuedPod = {
      info: new PodInfo(pod),
      queuedAt: this.#options.clock.monotonic(),
      sequence: this.#sequence++,
      attempts: 0,
      firstActiveAt: undefined,
      rejectedBy: new Set(),
      pendingOn: new Set(),
      gatedBy: undefined,
    };
    this.#measure(POD_ADDED, () => this.#activate(queued, POD_ADDED));
  }

  /** `events`: what has changed in the pod, which may make it schedulable. */
  update(pod: Pod, events: readonly ClusterEvent[]): void {
    this.#measure(POD_UPDATED, () => this.#update(pod, events));
  }

  #update(pod: Pod, events: readonly ClusterEvent[]): void {
    const uid = uidOf(pod);
    if (this.#inFlight.has(uid)) {
      for (const event of events) this.#inFlight.record(event);
      return;
    }
    const queued = this.#find(uid);
    if (queued === undefined) {
      this.add(pod);
      return;
    }
    const priority = queued.info.priority;
    queued.info = new PodInfo(pod);
    if (this.#active.get(uid) !== undefined) {
      if (priority !== queued.info.priority) this.#active.set(queued);
      return;
    }
    if (this.#unschedulable.has(uid)) for (const event of events) if (this.#retry(queued, event)) return;
  }

  /** The pod was deleted, or is on a node. */
  delete(uid: string): void {
    this.#active.delete(uid);
    this.#backoff.delete(uid);
    this.#unschedulable.delete(uid);
  }

  /** The next pod, which is in flight from then on; undefined if none is to be scheduled now. */
  pop(): QueuedPod | undefined {
    const queued = this.#active.shift() ?? this.#popBackoff();
    if (queued === undefined) return undefined;
    queued.attempts++;
    this.#inFlight.begin(queued.info.uid);
    return queued;
  }

  /** Resolves when `pop` may return a pod, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return this.#wakeup.wait(signal);
  }

  /** The pod is not in flight any more: it is bound or about to be, or was deleted. */
  done(uid: string): void {
    this.#inFlight.end(uid);
  }

  /** Returns a pod that was not scheduled; without plugins in `rejectedBy` because of an error. */
  addUnschedulable(queued: QueuedPod): void {
    const events = this.#inFlight.end(queued.info.uid);
    if (this.#find(queued.info.uid) !== undefined) return;
    queued.queuedAt = this.#options.clock.monotonic();
    queued.sequence = this.#sequence++;
    const isError = queued.rejectedBy.size === 0;
    const requeues = events?.map((event) => this.#requeueFor(queued, event)) ?? [];
    const requeue = isError || events === undefined ? "afterBackoff" : strongest(requeues);
    this.#requeue(queued, requeue, "ScheduleAttemptFailure");
  }

  /** Retries the pods that the event may make schedulable. */
  move(event: ClusterEvent, isConcerned: (pod: PodInfo) => boolean = () => true): void {
    this.#measure(labelOf(event), () => {
      this.#inFlight.record(event);
      this.#retryConcerned(event, isConcerned);
    });
  }

  #measure(event: string, handle: () => void): void {
    const { clock, onEventHandled } = this.#options;
    const beganAt = clock.monotonic();
    handle();
    onEventHandled?.(event, clock.monotonic() - beganAt);
  }

  #retryConcerned(event: ClusterEvent, isConcerned: (pod: PodInfo) => boolean): void {
    if (this.#unschedulable.size === 0) return;
    const isRegistered = this.#options.isRegistered(event);
    for (const queued of [...this.#unschedulable.values()]) {
      // Only extenders react to events that no plugin has registered.
      if (!isRegistered && !queued.rejectedBy.has(EXTENDER)) continue;
      if (isConcerned(queued.info)) this.#retry(queued, event);
    }
  }

  /** Schedules the pod now, wherever it waits. */
  activate(uid: string): void {
    const queued = this.#unschedulable.get(uid) ?? this.#backoff.get(uid);
    if (queued !== undefined) this.#activate(queued, "ForceActivate");
  }

  /** Schedules a rejected pod after its back-off, as after an error. */
  retryAfterBackoff(uid: string): void {
    const queued = this.#unschedulable.get(uid);
    if (queued === undefined) return;
    queued.rejectedBy = new Set();
    this.#requeue(queued, "afterBackoff", "PreemptionFailure");
  }

  [Symbol.dispose](): void {
    this.#backoffTimer?.timer.cancel();
    this.#leftoverTimer?.cancel();
    this.#backoffTimer = undefined;
    this.#leftoverTimer = undefined;
  }

  #find(uid: string): QueuedPod | undefined {
    return this.#active.get(uid) ?? this.#backoff.get(uid) ?? this.#unschedulable.get(uid);
  }

  #retry(queued: QueuedPod, event: ClusterEvent): boolean {
    const requeue = this.#requeueFor(queued, event);
    if (requeue === "never") return false;
    this.#unschedulable.delete(queued.info.uid);
    return this.#requeue(queued, requeue, labelOf(event));
  }

  #requeueFor({ info, rejectedBy, pendingOn }: QueuedPod, event: ClusterEvent): Requeue {
    if (rejectedBy.size === 0 || rejectedBy.has(EXTENDER)) return "afterBackoff";
    const interested = this.#options.interestedPlugins(info, event, rejectedBy);
    if (interested.length === 0) return "never";
    return interested.some((name) => pendingOn.has(name)) ? "now" : "afterBackoff";
  }

  /** Returns whether the pod left the unschedulable part. */
  #requeue(queued: QueuedPod, requeue: Requeue, event: string): boolean {
    if (requeue === "never") {
      this.#setUnschedulable(queued, event);
      return false;
    }
    const isBackingOff = this.#backoffEnd(queued) > this.#options.clock.monotonic();
    if (requeue === "now" || !isBackingOff) return this.#activate(queued, event);
    if (!this.#passesGates(queued, event)) return false;
    this.#unschedulable.delete(queued.info.uid);
    this.#backoff.set(queued);
    this.#options.onQueued?.("backoff", event);
    this.#armBackoff();
    if (this.#options.popsFromBackoff) this.#wakeup.notify();
    return true;
  }

  #activate(queued: QueuedPod, event: string): boolean {
    if (!this.#passesGates(queued, event)) return false;
    const { uid } = queued.info;
    this.#unschedulable.delete(uid);
    this.#backoff.delete(uid);
    queued.firstActiveAt ??= this.#options.clock.monotonic();
    this.#active.set(queued);
    this.#options.onQueued?.("active", event);
    this.#wakeup.notify();
    return true;
  }

  #passesGates(queued: QueuedPod, event: string): boolean {
    const rejection = this.#options.preEnqueue(queued.info);
    queued.gatedBy = rejection?.plugin;
    if (rejection === undefined) return true;
    queued.rejectedBy = new Set([...queued.rejectedBy, rejection.plugin]);
    this.#backoff.delete(queued.info.uid);
    this.#setUnschedulable(queued, event);
    return false;
  }

  #setUnschedulable(queued: QueuedPod, event: string): void {
    this.#unschedulable.set(queued.info.uid, queued);
    this.#options.onQueued?.("unschedulable", event);
    this.#leftoverTimer ??= this.#options.clock.timer(this.#options.unschedulableMaxMs, () => this.#flushLeftovers());
  }

  /** Retries the pods that have been unschedulable for long. */
  #flushLeftovers(): void {
    this.#leftoverTimer = undefined;
    const now = this.#options.clock.monotonic();
    let next: number | undefined;
    for (const queued of [...this.#unschedulable.values()]) {
      const dueAt = queued.queuedAt + this.#options.unschedulableMaxMs;
      if (dueAt <= now && queued.gatedBy !== SCHEDULING_GATES)
        this.#requeue(queued, "afterBackoff", "UnschedulableTimeout");
      else if (dueAt > now) next = Math.min(next ?? dueAt, dueAt);
    }
    if (next !== undefined && this.#leftoverTimer === undefined) {
      this.#leftoverTimer = this.#options.clock.timer(next - now, () => this.#flushLeftovers());
    }
  }

  /**
   * The first of the pods whose back-off ends in the same second, the earliest one. Pods with errors wait until the end
   * of theirs.
   */
  #popBackoff(): QueuedPod | undefined {
    if (!this.#options.popsFromBackoff || this.#backoff.size === 0) return undefined;
    let first: QueuedPod | undefined;
    for (const queued of this.#backoff.values()) {
      if (queued.rejectedBy.size > 0 && (first === undefined || this.#isPoppedBefore(queued, first))) first = queued;
    }
    if (first !== undefined) this.#backoff.delete(first.info.uid);
    return first;
  }

  #isPoppedBefore(a: QueuedPod, b: QueuedPod): boolean {
    const windowOf = (queued: QueuedPod): number => Math.floor(this.#backoffEnd(queued) / BACKOFF_WINDOW_MS);
    const [windowA, windowB] = [windowOf(a), windowOf(b)];
    return windowA === windowB ? isScheduledBefore(a, b) : windowA < windowB;
  }

  #backoffEnd({ queuedAt, attempts }: QueuedPod): number {
    const { initialBackoffMs, maxBackoffMs } = this.#options;
    if (attempts === 0) return queuedAt;
    return queuedAt + Math.min(maxBackoffMs, initialBackoffMs * 2 ** Math.min(attempts - 1, 30));
  }

  #armBackoff(): void {
    const first = this.#backoff.first;
    if (first === undefined) return;
    const at = this.#backoffEnd(first);
    if (this.#backoffTimer !== undefined && this.#backoffTimer.at <= at) return;
    this.#backoffTimer?.timer.cancel();
    const timer = this.#options.clock.timer(at - this.#options.clock.monotonic(), () => this.#flushBackoff());
    this.#backoffTimer = { at, timer };
  }

  #flushBackoff(): void {
    this.#backoffTimer = undefined;
    const now = this.#options.clock.monotonic();
    for (let first = this.#backoff.first; first !== undefined; first = this.#backoff.first) {
      if (this.#backoffEnd(first) > now) break;
      this.#backoff.delete(first.info.uid);
      this.#activate(first, "BackoffComplete");
    }
    this.#armBackoff();
  }
}

function keyOf({ info }: QueuedPod): string {
  return info.uid;
}

function strongest(requeues: readonly Requeue[]): Requeue {
  if (requeues.includes("now")) return "now";
  return requeues.includes("afterBackoff") ? "afterBackoff" : "never";
}
