/** Observes the sandboxes and containers of one pod in the runtime. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import {
  type CreatedIds,
  digestOf,
  emptyObservation,
  type Observation,
  observe,
  observeCreated,
} from "../../runtime/observation.ts";
import type { ListedPod } from "../../runtime/relister.ts";
import { isUnreachable, type Runtime, RuntimeError } from "../../runtime/runtime.ts";
import { awaitFinalReason, mayBeOomKilled } from "../containers/oom-reason.ts";
import { addTerminationMessage } from "../containers/termination-message.ts";
import { allContainers, podUid } from "../pod-fields.ts";

export interface PodObserverOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly pod: () => Pod;
  /** Called with each new observation, before `observe` resolves. */
  readonly onObservation: (seen: Observation) => void;
  /** The runtime is reachable but cannot report the pod's status; called once until it can again. */
  readonly onStatusError: (error: RuntimeError) => void;
  readonly signal: AbortSignal;
}

export class PodObserver {
  /** The worker did nothing since the last observation: the next `refresh` returns that one. */
  isCurrent = false;
  readonly #options: PodObserverOptions;
  #observation: Observation = emptyObservation;
  /** Digest of the observation. */
  #digest = digestOf(emptyObservation);
  /** When the observation began, on the monotonic clock. */
  #observedAt = Number.NEGATIVE_INFINITY;
  /** Observations are sequential, so that an older one never replaces a newer one. */
  #last: Promise<unknown> = Promise.resolve();
  #pendingCount = 0;
  #hasStatusError = false;
  #isCreating = false;
  /** Created since the last observation; undefined: the worker did more than that. */
  #created: readonly CreatedIds[] | undefined = [];

  constructor(options: PodObserverOptions) {
    this.#options = options;
  }

  /** The last observation. */
  get observation(): Observation {
    return this.#observation;
  }

  /** Observations that have not completed. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Observes everything; only the created containers if the worker did nothing else since the last observation. */
  async refresh(): Promise<Observation> {
    if (this.isCurrent) {
      this.isCurrent = false;
      return this.#observation;
    }
    const created = this.#created;
    return await this.#observe(created?.length === 0 ? undefined : created);
  }

  /** Runs a creation; `compareListing` ignores listings that see it half done. Rejects as the work does. */
  async create(work: () => Promise<CreatedIds | undefined>): Promise<void> {
    const before = this.#created;
    this.isCurrent = false;
    this.#created = undefined;
    this.#isCreating = true;
    try {
      const created = await work();
      this.#created = before && created && [...before, created];
    } finally {
      this.#isCreating = false;
      this.#observedAt = this.#options.clock.monotonic();
    }
  }

  /** Whether a listing that was requested at that time differs from the observation; undefined if it may be older. */
  compareListing(digest: string, requestedAt: number): boolean | undefined {
    if (digest === this.#digest) return false;
    return this.#isCreating || requestedAt < this.#observedAt ? undefined : true;
  }

  /** The next `refresh` returns the last observation if a later listing has the same state. */
  adoptListing({ digest, requestedAt }: ListedPod): void {
    if (this.#pendingCount > 0 || this.#created?.length !== 0 || this.#hasStatusError) return;
    this.isCurrent ||= digest === this.#digest && requestedAt >= this.#observedAt;
  }

  /** Rejects when the runtime cannot be reached, or the signal aborts. */
  observe(): Promise<Observation> {
    return this.#observe(undefined);
  }

  #observe(created: readonly CreatedIds[] | undefined): Promise<Observation> {
    this.#pendingCount += 1;
    const observation = this.#last.then(async () => {
      const began = this.#options.clock.monotonic();
      try {
        this.#observation = await this.#readRuntime(created);
        this.#hasStatusError = false;
      } catch (error) {
        this.#reportStatusError(error);
        throw error;
      } finally {
        this.#pendingCount -= 1;
      }
      this.#digest = digestOf(this.#observation);
      this.#observedAt = began;
      this.#created = [];
      this.#options.onObservation(this.#observation);
      return this.#observation;
    });
    this.#last = observation.catch(() => undefined);
    return observation;
  }

  #reportStatusError(error: unknown): void {
    // The node's conditions report a runtime that cannot be reached.
    if (this.#hasStatusError || !(error instanceof RuntimeError) || isUnreachable(error)) return;
    this.#hasStatusError = true;
    this.#options.onStatusError(error);
  }

  async #readRuntime(created: readonly CreatedIds[] | undefined): Promise<Observation> {
    const { runtime, clock, signal } = this.#options;
    const pod = this.#options.pod();
    const previous = this.#observation;
    const { sandboxes, containers } =
      created === undefined
        ? await observe(runtime, podUid(pod), previous, signal)
        : await observeCreated(runtime, created, previous, signal);
    const count = allContainers(pod).length;
    const read = containers.map(async (each) => {
      if (previous.containers.includes(each)) return each;
      const isFinal = !mayBeOomKilled(pod, each);
      return await addTerminationMessage(isFinal ? each : await awaitFinalReason(each, runtime, clock, signal), count);
    });
    return { sandboxes, containers: await Promise.all(read) };
  }
}
