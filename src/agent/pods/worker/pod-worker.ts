/**
 * One loop per pod, and the only writer of that pod. It receives the newest desired version (and skips older ones), is
 * woken when the runtime changed, and reconciles the observed state with the desired one, one state after the other.
 */
import type { Pod, PodStatus } from "../../../api/core/pod/schema.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Timer } from "../../../std/time/clock.ts";
import { runWithSpans } from "../../../tracing/span.ts";
import type { Observation, ObservedContainer } from "../../runtime/observation.ts";
import type { ListedPod } from "../../runtime/relister.ts";
import type { PodContext, PodMemory, PodServices, SyncOperation } from "../pod-context.ts";
import { podFullName, podUid } from "../pod-fields.ts";
import type { PodState, StateName, Transition } from "../states/pod-state.ts";
import { podStates } from "../states/states.ts";
import { findPreviousRun } from "../status/container-status.ts";
import { applyPendingReason } from "../status/waiting-reasons.ts";
import { deadlineExceeded, startDeadlineTimer } from "./deadline.ts";
import { adoptRestartDelays, createPodMemory, withoutUnfinishedStarts } from "./pod-memory.ts";
import { PodObserver } from "./pod-observer.ts";
import { PodTermination, type Termination } from "./pod-termination.ts";
import { SyncSpans } from "./sync-spans.ts";
import { WorkerSleep } from "./worker-sleep.ts";

export interface PodWorkerOptions {
  readonly services: PodServices;
  readonly pod: Pod;
  /** The runtime has the pod and no source does: the worker only ends it. */
  readonly isOrphan: boolean;
  /** The last listing of the runtime had nothing of the pod: the worker does not observe it first. */
  readonly isNew: boolean;
  /** The pod in the last listing of the runtime. */
  readonly findListed?: ((uid: string) => ListedPod | undefined) | undefined;
  /** When a source first had the pod, on the monotonic clock; unknown when absent. */
  readonly seenAt?: number | undefined;
  /** Called with every new status, also when it equals the one before. */
  readonly onStatus: (pod: Pod, status: PodStatus) => void;
}

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 10_000;

export class PodWorker {
  /** Resolves when the worker ended: the pod is removed, or `stop` was called. Never rejects. */
  readonly done: Promise<void>;
  readonly #options: PodWorkerOptions;
  readonly #log: Logger;
  readonly #memory: PodMemory;
  readonly #stop = new AbortController();
  #pod: Pod;
  #removed: boolean;
  readonly #termination = new PodTermination();
  /** Into the current state, with the input of that state. */
  #transition: Exclude<Transition, { readonly to: "gone" }> = { to: "admitting" };
  /** Interrupts the current state; replaced after that. */
  #interrupt = new AbortController();
  readonly #sleep: WorkerSleep;
  readonly #observer: PodObserver;
  /** Undefined: the work is not traced. */
  readonly #spans: SyncSpans | undefined;
  #hasObserved = false;
  /** The work since the last wait; undefined while the worker waits. */
  #sync: { readonly operation: SyncOperation; readonly began: number } | undefined;
  #isUpdated = false;
  #deadline: Timer | undefined;
  readonly #ended = Promise.withResolvers<void>();

  constructor(options: PodWorkerOptions) {
    this.#options = options;
    this.#pod = options.pod;
    this.#removed = options.isOrphan;
    this.#log = options.services.log.child("pod-worker", { pod: podFullName(options.pod) });
    const { runtime, clock, settings, events } = options.services;
    this.#memory = createPodMemory(options.pod, clock, settings.restartDelays);
    this.#sleep = new WorkerSleep(clock);
    this.#observer = new PodObserver({
      runtime,
      clock,
      pod: () => this.#pod,
      onObservation: (observation) => this.#onObservation(observation),
      onStatusError: ({ message }) =>
        events.recordPodEvent(this.#pod, "Warning", "FailedSync", `error determining status: ${message}`),
      signal: this.#stop.signal,
    });
    if (options.isOrphan) this.#termination.request({ graceSeconds: undefined, failure: undefined });
    this.#termination.observe(this.#pod, undefined);
    const { tracer } = options.services;
    this.#spans = tracer && new SyncSpans(tracer);
    this.done = this.#spans === undefined ? this.#run() : runWithSpans(this.#spans, () => this.#run());
  }

  /** The newest version, with the resources that are allocated to it. */
  get pod(): Pod {
    return this.#memory.resources.applyTo(this.#pod);
  }

  /** The sources no longer have the pod: the worker ends with it. */
  get isRemoved(): boolean {
    return this.#removed;
  }

  /** A resize waits until the node has capacity. */
  get hasPendingResize(): boolean {
    return this.#memory.resources.pending !== undefined;
  }

  get observation(): Observation {
    return this.#observer.observation;
  }

  get stateName(): StateName {
    return this.#transition.to;
  }

  get #state(): PodState {
    return podStates[this.#transition.to];
  }

  /** The last generated status; undefined until there is one. */
  get status(): PodStatus | undefined {
    return this.#memory.status;
  }

  /** Why a container has not run yet. */
  getWaitingReason(name: string): string {
    const fallback = this.#pod.spec?.initContainers === undefined ? "ContainerCreating" : "PodInitializing";
    return this.#memory.waitingReasons.get(name)?.reason ?? fallback;
  }

  /** See `findPreviousRun` of the container status. */
  findPreviousRun(name: string): ObservedContainer | undefined {
    return findPreviousRun(this.#memory.status, this.observation, name);
  }

  /** The worker does nothing but wait, for time to pass or for a change. */
  get isIdle(): boolean {
    return this.#sleep.isSleeping && this.#observer.pendingCount === 0;
  }

  /** Sets the newest version; replaces one that the worker has not processed yet. */
  update(pod: Pod): void {
    const before = this.#pod;
    if (this.stateName !== "admitting") this.#memory.resources.keepAllocation(before);
    const isUnchanged = deepEqual(relevantFields(pod), relevantFields(before));
    this.#pod = pod;
    this.#isUpdated ||= !isUnchanged;
    if (!deepEqual(pod.spec, before.spec)) this.#resetRetries();
    if (this.#hasObserved && pod.spec?.activeDeadlineSeconds !== before.spec?.activeDeadlineSeconds)
      this.#watchDeadline();
    if (this.#termination.observe(pod, before)) this.#interruptState();
    if (!isUnchanged) this.#sleep.wake();
    // This worker wrote the status itself, except for the conditions of readiness gates.
    else if (this.#hasObserved && pod.spec?.readinessGates !== undefined) this.#publish();
  }

  /** The sources no longer have the pod: ends the pod and then the worker. */
  remove(): void {
    this.#removed = true;
    // A forced deletion has set the grace period already, and no client waits for the containers any more.
    this.terminate(this.#termination.current ?? { graceSeconds: undefined, failure: undefined });
  }

  /**
   * Observes the pod when a listing of the runtime, requested at that time, differs from the last observation. False:
   * the listing may be older than the observation.
   */
  compareListing(digest: string, requestedAt: number): boolean {
    const differs = this.#observer.compareListing(digest, requestedAt);
    if (differs === true) this.onRuntimeChange();
    return differs !== undefined;
  }

  /** The runtime's state of the pod changed, or the result of a probe. */
  onRuntimeChange(): void {
    if (this.#observer.pendingCount > 1) return;
    this.#observer
      .observe()
      .then(() => {
        this.#observer.isCurrent = this.#sleep.isWakeable;
      })
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#log.v(2)?.info("Failed to observe pod", { error: String(error) });
      })
      .finally(() => this.#sleep.wake());
  }

  /** Ends the pod because the node requires it: eviction, shutdown, a deadline. */
  terminate(termination: Termination): void {
    if (this.#termination.request(termination)) this.#interruptState();
    this.#sleep.wake();
  }

  /** Resolves when no container of the pod runs any more, or the worker ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Resolves when, after that, its volumes are released, or the worker ended. */
  get released(): Promise<void> {
    return this.#memory.released.promise;
  }

  /** Ends the worker and leaves the containers running. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("the agent stops"));
    this.#interrupt.abort(this.#stop.signal.reason);
    this.#sleep.wake();
    await this.done;
  }

  /** Containers that failed to start may start with the new spec. */
  #resetRetries(): void {
    this.#memory.retryAt.clear();
    for (const name of this.#memory.pendingReasons.keys()) applyPendingReason({ memory: this.#memory }, name);
  }

  #interruptState(): void {
    if (this.stateName !== "terminated") this.#interrupt.abort(new Error("the pod is to end"));
  }

  async #run(): Promise<void> {
    // Lets the constructor return first.
    await Promise.resolve();
    this.#recordStart();
    let retryMs = RETRY_MIN_MS;
    while (!this.#stop.signal.aborted) {
      if (this.#termination.current !== undefined && !isEnding(this.stateName)) this.#enter({ to: "terminating" });
      if (this.#interrupt.signal.aborted) this.#interrupt = new AbortController();
      const context = this.#context();
      try {
        if (!this.#hasObserved) {
          if (!this.#options.isNew) await this.#observer.observe();
          this.#observer.isCurrent = true;
          this.#hasObserved = true;
          adoptRestartDelays(this.#memory, this.#observer.observation);
          this.#watchDeadline();
        }
        this.#publish();
        const next = await this.#state.next(context, this.#transition);
        retryMs = RETRY_MIN_MS;
        if (next.to === "gone") break;
        this.#enter(next);
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        if (context.signal.aborted) continue;
        this.#log.error("Failed to sync pod", error, { state: this.stateName });
        await context.pause(retryMs).catch(() => undefined);
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    this.#recordSync();
    // An observation that has not completed must not publish the status of a pod that is removed.
    this.#stop.abort(new Error("the worker has ended"));
    this.#ended.resolve();
    this.#memory.released.resolve();
    this.#sleep.releaseStartSlot();
    this.#deadline?.cancel();
    this.#options.services.probes.stop(podUid(this.#pod));
  }

  #enter(transition: Exclude<Transition, { readonly to: "gone" }>): void {
    if (transition.to !== this.stateName) {
      this.#log.v(4)?.info("Pod changes state", { from: this.stateName, to: transition.to });
    }
    this.#transition = transition;
    this.#spans?.enter(this.#pod, transition.to);
    if (isEnding(this.stateName)) this.#sleep.releaseStartSlot();
    if (transition.to === "terminated") this.#ended.resolve();
  }

  #context(): PodContext {
    const worker = this;
    const signal = this.#interrupt.signal;
    return {
      services: this.#options.services,
      log: this.#log,
      memory: this.#memory,
      signal,
      stopSignal: this.#stop.signal,
      get pod() {
        return worker.pod;
      },
      get desired() {
        return worker.#pod;
      },
      get observation() {
        return worker.#observer.observation;
      },
      get termination() {
        return worker.#termination.current;
      },
      get isRemoved() {
        return worker.#removed;
      },
      refresh: () => this.#observer.refresh(),
      create: (work) => this.#observer.create(work),
      acquireStartSlot: () =>
        this.#sleep.acquireStartSlot(this.#options.services.startLimiter, this.#pod.spec?.priority ?? 0, signal),
      wait: (milliseconds) => this.#wait(milliseconds, signal),
      pause: (milliseconds) => this.#rest(() => this.#sleep.pause(milliseconds, signal)),
    };
  }

  async #wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    this.#observer.isCurrent = false;
    const isWoken = await this.#rest(() => this.#sleep.wait(milliseconds, signal));
    // As in Kubernetes, a periodic sync requests nothing from the runtime while its listings show no change.
    const listed = isWoken ? undefined : this.#options.findListed?.(podUid(this.#pod));
    if (listed !== undefined) this.#observer.adoptListing(listed);
  }

  /** Ends the measured work and begins the next one afterwards. */
  async #rest<T>(sleep: () => Promise<T>): Promise<T> {
    this.#recordSync();
    try {
      return await sleep();
    } finally {
      this.#beginSync(this.#isUpdated ? "update" : "sync");
    }
  }

  #beginSync(operation: SyncOperation): void {
    this.#isUpdated = false;
    this.#sync = { operation, began: this.#options.services.clock.monotonic() };
    this.#spans?.begin(this.#pod, this.stateName, operation);
  }

  #recordStart(): void {
    const { seenAt, services } = this.#options;
    this.#beginSync("create");
    if (seenAt !== undefined) services.metrics?.onWorkerStart((services.clock.monotonic() - seenAt) / 1000);
  }

  #recordSync(): void {
    const { clock, metrics } = this.#options.services;
    if (this.#sync === undefined) return;
    metrics?.onSync(this.#sync.operation, (clock.monotonic() - this.#sync.began) / 1000);
    this.#sync = undefined;
    this.#spans?.end();
  }

  #onObservation(observation: Observation): void {
    const { probes } = this.#options.services;
    if (!isEnding(this.stateName)) probes.sync(this.#pod, withoutUnfinishedStarts(this.#memory, observation));
    this.#publish();
  }

  #publish(): void {
    // As in Kubernetes, a pod has no status of the node before the node has admitted it.
    if (this.#stop.signal.aborted || this.stateName === "admitting") return;
    const status = this.#state.status(this.#context());
    if (!deepEqual(status, this.#memory.status)) this.#memory.status = status;
    this.#options.onStatus(this.#pod, this.#memory.status ?? status);
  }

  #watchDeadline(): void {
    this.#deadline?.cancel();
    if (this.#termination.current !== undefined) return;
    const { clock, events } = this.#options.services;
    this.#deadline = startDeadlineTimer(this.#pod, this.#memory.startTime, clock, () => {
      if (this.#termination.current !== undefined) return;
      events.recordPodEvent(this.#pod, "Normal", deadlineExceeded.reason, deadlineExceeded.message);
      this.terminate({ graceSeconds: undefined, failure: deadlineExceeded });
    });
  }
}

/** The fields whose changes the worker acts upon. */
function relevantFields({ spec, metadata }: Pod): Pick<Pod, "spec" | "metadata"> {
  const { resourceVersion: _revision, managedFields: _managed, generation: _generation, ...rest } = metadata ?? {};
  return { spec, metadata: rest };
}

function isEnding(state: StateName): boolean {
  return state === "terminating" || state === "terminated";
}
