/** Asks plugins one after another, and notes how long each took, and all of them. */
import type { Clock } from "../../std/time/clock.ts";
import type { Soon } from "../../std/async/maybe-promise.ts";
import type { Note } from "./metrics.ts";

/** Time by time: the end of one is the beginning of the next, so that the clock is read once for each. */
export class Laps {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #began: number;
  #last: number;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    this.#began = clock.monotonic();
    this.#last = this.#began;
  }

  /** Since the last time it was asked, in milliseconds. */
  next(): number {
    const before = this.#last;
    this.#last = this.#clock.monotonic();
    return this.#last - before;
  }

  /** Of all that was asked for. */
  get total(): number {
    return this.#last - this.#began;
  }
}

/** Notes how long all of it took. */
export function noted<T>(note: Note, laps: Laps, work: (laps: Laps) => Soon<T>): Soon<T> {
  const refuse = (error: unknown): never => {
    note.refused(laps.total);
    throw error;
  };
  const pass = (result: T): T => {
    note.passed(laps.total);
    return result;
  };
  let result: Soon<T>;
  try {
    result = work(laps);
  } catch (error) {
    return refuse(error);
  }
  return result instanceof Promise ? result.then(pass, refuse) : pass(result);
}

/** Most plugins answer at once: those from `first` on are asked without a promise, up to one that has to wait. */
export function askAll<S extends { readonly note: Note }>(
  steps: readonly S[],
  first: number,
  laps: Laps,
  ask: (step: S) => Soon<void>,
): Soon<void> {
  for (let i = first; i < steps.length; i++) {
    const step = steps[i]!;
    const { note } = step;
    let answer: Soon<void>;
    try {
      answer = ask(step);
    } catch (error) {
      note.refused(laps.next());
      throw error;
    }
    if (answer instanceof Promise) return askLater(answer, steps, i, laps, ask);
    note.passed(laps.next());
  }
}

async function askLater<S extends { readonly note: Note }>(
  answer: Promise<void>,
  steps: readonly S[],
  place: number,
  laps: Laps,
  ask: (step: S) => Soon<void>,
): Promise<void> {
  const { note } = steps[place]!;
  try {
    await answer;
  } catch (error) {
    note.refused(laps.next());
    throw error;
  }
  note.passed(laps.next());
  await askAll(steps, place + 1, laps, ask);
}
