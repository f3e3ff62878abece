/** Runs the steps of the admission chain and measures how long each takes. */

import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { DurationObserver } from "./metrics.ts";

/** Measures consecutive intervals: the end of one is the start of the next, so the clock is read once for each. */
export class Stopwatch {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #start: number;
  #last: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#start = clock.monotonic();
    this.#last = this.#start;
  }

  /** Milliseconds since the previous call. */
  lap(): number {
    const before = this.#last;
    this.#last = this.#clock.monotonic();
    return this.#last - before;
  }

  /** Milliseconds from the start to the last lap. */
  get total(): number {
    return this.#last - this.#start;
  }
}

/** Records the duration of `work`. */
export function observe<T>(
  observer: DurationObserver,
  stopwatch: Stopwatch,
  work: (stopwatch: Stopwatch) => MaybePromise<T>,
): MaybePromise<T> {
  const reject = (error: unknown): never => {
    observer.rejected(stopwatch.total);
    throw error;
  };
  const admit = (result: T): T => {
    observer.admitted(stopwatch.total);
    return result;
  };
  let result: MaybePromise<T>;
  try {
    result = work(stopwatch);
  } catch (error) {
    return reject(error);
  }
  return result instanceof Promise ? result.then(admit, reject) : admit(result);
}

/**
 * Runs the steps from index `first` on. Most plugins return synchronously, so a promise is only created for one that
 * does not.
 */
export function runSteps<S extends { readonly observer: DurationObserver }>(
  steps: readonly S[],
  first: number,
  stopwatch: Stopwatch,
  run: (step: S) => MaybePromise<void>,
): MaybePromise<void> {
  for (let i = first; i < steps.length; i++) {
    const step = steps[i]!;
    const { observer } = step;
    let result: MaybePromise<void>;
    try {
      result = run(step);
    } catch (error) {
      observer.rejected(stopwatch.lap());
      throw error;
    }
    if (result instanceof Promise) return continueSteps(result, steps, i, stopwatch, run);
    observer.admitted(stopwatch.lap());
  }
}

async function continueSteps<S extends { readonly observer: DurationObserver }>(
  result: Promise<void>,
  steps: readonly S[],
  index: number,
  stopwatch: Stopwatch,
  run: (step: S) => MaybePromise<void>,
): Promise<void> {
  const { observer } = steps[index]!;
  try {
    await result;
  } catch (error) {
    observer.rejected(stopwatch.lap());
    throw error;
  }
  observer.admitted(stopwatch.lap());
  await runSteps(steps, index + 1, stopwatch, run);
}
