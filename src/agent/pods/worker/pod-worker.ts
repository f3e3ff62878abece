/**
 * One loop per pod, and the only writer of that pod. It is given the newest wanted version (older ones are skipped), is
 * woken when the runtime changed, and drives what is observed to what is wanted, one state after the other.
 */
import type { Pod, PodStatus } from "../../../api/core/pod/schema.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Timer } from "../../../std/time/clock.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Observation, ObservedContainer } from "../../runtime/observation.ts";
import { findPreviousRun } from "../status/container-status.ts";
import { deadlineExceeded, startDeadlineTimer } from "./deadline.ts";
import { PodTermination } from "./pod-termination.ts";
import type { PodContext, PodMemory, PodServices, PodState, Termination, Transition } from "../pod-context.ts";
import { podFullName, podUid } from "../pod-fields.ts";
import { adoptRestartDelays, createPodMemory } from "./pod-memory.ts";
import { PodObserver } from "./pod-observer.ts";
import { WorkerSleep } from "./worker-sleep.ts";
import { stateOf } from "../states/state.ts";
import { applyPendingReason } from "../status/waiting-reasons.ts";

export interface PodWorkerOptions {
  readonly services: PodServices;
  readonly pod: Pod;
  /** A pod that the runtime has and no source wants: it is only ended. */
  readonly isOrphan: boolean;
  /** The runtime is known to have nothing of the pod. */
  readonly isNew: boolean;
  /** Called with every new status, also when it equals the one before. */
  readonly onStatus: (pod: Pod, status: PodStatus) => void;
}

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 10_000;

export class PodWorker {
  /** Resolves when the worker ended: the pod is gone, or `stop` was called. Never rejects. */
  readonly done: Promise<void>;
  readonly #options: PodWorkerOptions;
  readonly #log: Logger;
  readonly #memory: PodMemory;
  readonly #stop = new AbortController();
  #pod: Pod;
  #removed: boolean;
  readonly #ending = new PodTermination();
  #state: PodState = stateOf({ to: "admitting" });
  /** Of the state at work; replaced when it is interrupted. */
  #interrupt = new AbortController();
  readonly #rest: WorkerSleep;
  readonly #observer: PodObserver;
  /** The runtime has been looked at. */
  #hasSeen = false;
  #deadline: Timer | undefined;
  readonly #ended = Promise.withResolvers<void>();

  constructor(options: PodWorkerOptions) {
    this.#options = options;
    this.#pod = options.pod;
    this.#removed = options.isOrphan;
    this.#log = options.services.log.child("pod-worker", { pod: podFullName(options.pod) });
    const { runtime, clock, settings, events } = options.services;
    this.#memory = createPodMemory(options.pod, clock, settings.restartDelays);
    this.#rest = new WorkerSleep(clock);
    this.#observer = new PodObserver({
      runtime,
      clock,
      pod: () => this.#pod,
      onObservation: (seen) => this.#seen(seen),
      onStatusError: ({ message }) =>
        events.recordPodEvent(this.#pod, "Warning", "FailedSync", `error determining status: ${message}`),
      signal: this.#stop.signal,
    });
    if (options.isOrphan) this.#ending.request({ graceSeconds: undefined, failure: undefined });
    this.#ending.observe(this.#pod, undefined);
    this.done = this.#run();
  }

  /** The newest version, with the resources that it is granted. */
  get pod(): Pod {
    return this.#memory.resources.applyTo(this.#pod);
  }

  /** A resize waits until the node has room. */
  get hasPendingResize(): boolean {
    return this.#memory.resources.pending !== undefined;
  }

  get observation(): Observation {
    return this.#observer.observation;
  }

  get stateName(): PodState["name"] {
    return this.#state.name;
  }

  /** Why a container has not run yet. */
  getWaitingReason(name: string): string {
    const fallback = this.#pod.spec?.initContainers === undefined ? "ContainerCreating" : "PodInitializing";
    return this.#memory.waitingReasons.get(name)?.reason ?? fallback;
  }

  /** See `previousRun`. */
  findPreviousRun(name: string): ObservedContainer | undefined {
    return findPreviousRun(this.#memory.status, this.observation, name);
  }

  /** Nothing goes on but waiting: for time to pass, or for a change. */
  get isIdle(): boolean {
    return this.#rest.isSleeping && this.#observer.pendingCount === 0;
  }

  /** The newest version; one that came before and was not looked at is dropped. */
  update(pod: Pod): void {
    const before = this.#pod;
    if (this.#state.name !== "admitting") this.#memory.resources.keepAllocation(before);
    const asksTheSame = !this.#removed && deepEqual(relevantFields(pod), relevantFields(before));
    this.#pod = pod;
    this.#removed = false;
    if (!deepEqual(pod.spec, before.spec)) this.#tryAgain();
    if (this.#hasSeen && pod.spec?.activeDeadlineSeconds !== before.spec?.activeDeadlineSeconds) this.#watchDeadline();
    if (this.#ending.observe(pod, before)) this.#end();
    if (!asksTheSame) this.#rest.wake();
    // The status is what this worker wrote itself, but for the conditions of readiness gates.
    else if (this.#hasSeen && pod.spec?.readinessGates !== undefined) this.#publish();
  }

  /** The sources no longer have the pod: it ends, and so does the worker. */
  remove(): void {
    this.#removed = true;
    // Whoever forced the object out of the API said how long its containers get; nobody waits for them any more.
    this.terminate(this.#ending.termination ?? { graceSeconds: undefined, failure: undefined });
  }

  /** The runtime's listing, asked for at that time, says this of the pod. False: it may be older than what is known. */
  compareListing(digest: string, askedAt: number): boolean {
    const isNews = this.#observer.compareListing(digest, askedAt);
    if (isNews === true) this.runtimeChanged();
    return isNews !== undefined;
  }

  /** Something of the pod changed in the runtime, or a probe came to a verdict. */
  runtimeChanged(): void {
    if (this.#observer.pendingCount > 1) return;
    this.#observer
      .observe()
      .then(() => {
        this.#observer.isCurrent = this.#rest.isWakeable;
      })
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#log.v(2)?.info("Cannot look at pod", { error: String(error) });
      })
      .finally(() => this.#rest.wake());
  }

  /** Ends the pod for a reason of the node's: eviction, shutdown, a deadline. */
  terminate(termination: Termination): void {
    if (this.#ending.request(termination)) this.#end();
    this.#rest.wake();
  }

  /** Resolves when nothing of the pod runs any more, or the worker ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Ends the worker and leaves the containers alone. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("the agent stops"));
    this.#interrupt.abort(this.#stop.signal.reason);
    this.#rest.wake();
    await this.done;
  }

  /** What failed may work now. */
  #tryAgain(): void {
    this.#memory.retryAt.clear();
    for (const name of this.#memory.pendingReasons.keys()) applyPendingReason({ memory: this.#memory }, name);
  }

  /** From whatever it is doing. */
  #end(): void {
    if (this.#state.name !== "terminated") this.#interrupt.abort(new Error("the pod is to end"));
  }

  async #run(): Promise<void> {
    // The constructor returns before anything else happens.
    await Promise.resolve();
    let retryMs = RETRY_MIN_MS;
    while (!this.#stop.signal.aborted) {
      if (this.#ending.termination !== undefined && !isEnding(this.#state)) this.#enter({ to: "terminating" });
      if (this.#interrupt.signal.aborted) this.#interrupt = new AbortController();
      const context = this.#context();
      try {
        if (!this.#hasSeen) {
          if (!this.#options.isNew) await this.#observer.observe();
          this.#observer.isCurrent = true;
          this.#hasSeen = true;
          adoptRestartDelays(this.#memory, this.#observer.observation);
          this.#watchDeadline();
        }
        this.#publish();
        const next = await this.#state.next(context);
        retryMs = RETRY_MIN_MS;
        if (next === null) break;
        this.#enter(next);
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        if (context.signal.aborted) continue;
        this.#log.error("Cannot sync pod", error, { state: this.#state.name });
        await this.#rest.pause(retryMs, context.signal).catch(() => undefined);
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    this.#ended.resolve();
    this.#rest.releaseStartSlot();
    this.#deadline?.cancel();
    this.#options.services.probes.stop(podUid(this.#pod));
  }

  #enter(transition: Transition): void {
    if (transition.to !== this.#state.name) {
      this.#log.v(4)?.info("Pod changes state", { from: this.#state.name, to: transition.to });
    }
    this.#state = stateOf(transition);
    if (isEnding(this.#state)) this.#rest.releaseStartSlot();
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
      get pod() {
        return worker.pod;
      },
      get wanted() {
        return worker.#pod;
      },
      get observation() {
        return worker.#observer.observation;
      },
      get termination() {
        return worker.#ending.termination;
      },
      get removed() {
        return worker.#removed;
      },
      refresh: () => this.#observer.refresh(),
      create: (work) => this.#observer.create(work),
      acquireStartSlot: () => this.#rest.acquireStartSlot(this.#options.services.startLimiter, this.#pod.spec?.priority ?? 0, signal),
      wait: (milliseconds) => this.#wait(milliseconds, signal),
      pause: (milliseconds) => this.#rest.pause(milliseconds, signal),
    };
  }

  /** What is seen while the worker waits is as good as what it would see afterwards. */
  async #wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    this.#observer.isCurrent = false;
    await this.#rest.wait(milliseconds, signal);
  }

  #seen(observation: Observation): void {
    if (!isEnding(this.#state)) this.#options.services.probes.sync(this.#pod, observation);
    this.#publish();
  }

  #publish(): void {
    if (this.#stop.signal.aborted) return;
    const status = this.#state.status(this.#context());
    if (!deepEqual(status, this.#memory.status)) this.#memory.status = status;
    this.#options.onStatus(this.#pod, this.#memory.status ?? status);
  }

  #watchDeadline(): void {
    this.#deadline?.cancel();
    if (this.#ending.termination !== undefined) return;
    const { clock, events } = this.#options.services;
    this.#deadline = startDeadlineTimer(this.#pod, this.#memory.startTime, clock, () => {
      if (this.#ending.termination !== undefined) return;
      events.recordPodEvent(this.#pod, "Normal", deadlineExceeded.reason, deadlineExceeded.message);
      this.terminate({ graceSeconds: undefined, failure: deadlineExceeded });
    });
  }
}

/** Of a pod, what somebody may want the worker to act upon. */
function relevantFields({ spec, metadata }: Pod): Pick<Pod, "spec" | "metadata"> {
  const { resourceVersion: _revision, managedFields: _managed, generation: _generation, ...rest } = metadata ?? {};
  return { spec, metadata: rest };
}

function isEnding(state: PodState): boolean {
  return state.name === "terminating" || state.name === "terminated";
}
