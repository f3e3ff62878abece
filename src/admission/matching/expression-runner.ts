import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";

/**
 * Thrown by what an expression needs and what takes long: a value that must be awaited, or computed in another turn of
 * the event loop. The logical operators do not swallow it.
 */
export class Pending extends Error {
  /** Makes the value available. May throw or reject with a further `Pending`. */
  readonly settle: () => MaybePromise<void>;

  constructor(settle: () => MaybePromise<void>) {
    super("the value of an expression is not available yet");
    this.settle = settle;
  }
}

/** Runs the expressions of one request in turns of the event loop: one expression may take tens of milliseconds. */
export class ExpressionRunner {
  readonly #slice = new TimeSlice();

  /** Evaluation is synchronous: it restarts when a value that was pending is available. */
  run<T>(evaluate: () => T): MaybePromise<T> {
    const turn = this.#slice.yield();
    return turn === undefined ? this.#evaluate(evaluate) : turn.then(() => this.#evaluate(evaluate));
  }

  #evaluate<T>(evaluate: () => T): MaybePromise<T> {
    try {
      return evaluate();
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      return this.#settle(error).then(() => this.#evaluate(evaluate));
    }
  }

  async #settle(first: Pending): Promise<void> {
    for (let pending: Pending | undefined = first; pending !== undefined; ) {
      await this.#slice.yield();
      pending = await this.#attempt(pending);
    }
  }

  /** Returns the pending value again if it needed another, which is available then. */
  async #attempt(pending: Pending): Promise<Pending | undefined> {
    try {
      await pending.settle();
      return undefined;
    } catch (error) {
      if (!(error instanceof Pending)) throw error;
      await this.#settle(error);
      return pending;
    }
  }
}
