/** Looks at what the runtime has of one pod. */
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
import { isUnreachable, type Runtime, RuntimeError } from "../../runtime/runtime.ts";
import { awaitFinalReason, mayBeOomKilled } from "../containers/oom-reason.ts";
import { addTerminationMessage } from "../containers/termination-message.ts";
import { allContainers, podUid } from "../pod-fields.ts";

export interface PodObserverOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly pod: () => Pod;
  /** Called with each new observation, before the look ends. */
  readonly onObservation: (seen: Observation) => void;
  /** The runtime answers, but not how the pod is; called once until it does again. */
  readonly onStatusError: (error: RuntimeError) => void;
  readonly signal: AbortSignal;
}

export class PodObserver {
  /** Nothing was done since the last look: the next `refresh` makes none. */
  isCurrent = false;
  readonly #options: PodObserverOptions;
  #observation: Observation = emptyObservation;
  /** Of the observation. */
  #digest = digestOf(emptyObservation);
  /** The observation is not older, on the monotonic clock. */
  #asOf = Number.NEGATIVE_INFINITY;
  /** Looks follow each other, so that an older answer never replaces a newer one. */
  #looks: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isUnknown = false;
  #isMaking = false;
  /** What was made since the last look; undefined: more was done than that. */
  #made: readonly CreatedIds[] | undefined = [];

  constructor(options: PodObserverOptions) {
    this.#options = options;
  }

  /** What was seen last. */
  get observation(): Observation {
    return this.#observation;
  }

  /** Looks that have not ended. */
  get pendingCount(): number {
    return this.#waiting;
  }

  /** A look at all of it, or at what was made since the last one where nothing else was done. */
  async refresh(): Promise<Observation> {
    if (this.isCurrent) {
      this.isCurrent = false;
      return this.#observation;
    }
    const made = this.#made;
    return await this.#lookAt(made?.length === 0 ? undefined : made);
  }

  /** Listings that see it half made are no news. Rejects as the work does. */
  async create(work: () => Promise<CreatedIds | undefined>): Promise<void> {
    const before = this.#made;
    this.isCurrent = false;
    this.#made = undefined;
    this.#isMaking = true;
    try {
      const made = await work();
      this.#made = before && made && [...before, made];
    } finally {
      this.#isMaking = false;
      this.#asOf = this.#options.clock.monotonic();
    }
  }

  /** What a listing, asked for at that time, says that is not known: undefined if it may be older than what is. */
  compareListing(digest: string, askedAt: number): boolean | undefined {
    if (digest === this.#digest) return false;
    return this.#isMaking || askedAt < this.#asOf ? undefined : true;
  }

  /** Rejects when the runtime does not answer, or the signal aborts. */
  observe(): Promise<Observation> {
    return this.#lookAt(undefined);
  }

  #lookAt(made: readonly CreatedIds[] | undefined): Promise<Observation> {
    this.#waiting += 1;
    const look = this.#looks.then(async () => {
      const began = this.#options.clock.monotonic();
      try {
        this.#observation = await this.#see(made);
        this.#isUnknown = false;
      } catch (error) {
        this.#noteUnknown(error);
        throw error;
      } finally {
        this.#waiting -= 1;
      }
      this.#digest = digestOf(this.#observation);
      this.#asOf = began;
      this.#made = [];
      this.#options.onObservation(this.#observation);
      return this.#observation;
    });
    this.#looks = look.catch(() => undefined);
    return look;
  }

  #noteUnknown(error: unknown): void {
    // Of a runtime that is away the node tells.
    if (this.#isUnknown || !(error instanceof RuntimeError) || isUnreachable(error)) return;
    this.#isUnknown = true;
    this.#options.onStatusError(error);
  }

  async #see(made: readonly CreatedIds[] | undefined): Promise<Observation> {
    const { runtime, clock, signal } = this.#options;
    const pod = this.#options.pod();
    const known = this.#observation;
    const { sandboxes, containers } =
      made === undefined
        ? await observe(runtime, podUid(pod), known, signal)
        : await observeCreated(runtime, made, known, signal);
    const count = allContainers(pod).length;
    const read = containers.map(async (each) => {
      if (known.containers.includes(each)) return each;
      const isSure = !mayBeOomKilled(pod, each);
      return await addTerminationMessage(isSure ? each : await awaitFinalReason(each, runtime, clock, signal), count);
    });
    return { sandboxes, containers: await Promise.all(read) };
  }
}
