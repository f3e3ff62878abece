import type { MaybePromise } from "./maybe-promise.ts";
import { TimeSlice } from "./time-slice.ts";

/** A long computation, which yields after each of its steps. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps at once. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Runs the steps in slices of time, between which the event loop handles others; synchronously when one suffices. */
export function runInSlices<T>(steps: Steps<T>, slice = new TimeSlice()): MaybePromise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    const turn = slice.yield();
    if (turn !== undefined) return turn.then(() => runInSlices(steps, slice));
  }
}
