import type { Clock } from "../std/time/clock.ts";

/** How long a writer may keep others waiting: it may itself wait for a webhook that writes the same object. */
const TURN_MAX_MS = 1000;

interface Turn {
  readonly started: PromiseWithResolvers<void>;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Writers of one key that met a conflict run one after another, each with the value that the one before it left.
 * Without that, n writers make n²/2 attempts, since each write is a conflict for all others.
 */
export class KeyQueues {
  readonly #clock: Clock;
  /** The last turn of each queue. */
  readonly #last = new Map<string, Turn>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether writers of the key run or wait. */
  has(key: string): boolean {
    return this.#last.has(key);
  }

  /** Runs the writer when the one before it is done, or a second after that one started. */
  async run<R>(key: string, write: () => Promise<R>): Promise<R> {
    const before = this.#last.get(key);
    const turn: Turn = { started: Promise.withResolvers(), done: Promise.withResolvers() };
    this.#last.set(key, turn);
    try {
      if (before !== undefined) await this.#waitFor(before);
      turn.started.resolve();
      return await write();
    } finally {
      turn.done.resolve();
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }

  async #waitFor({ started, done }: Turn): Promise<void> {
    await started.promise;
    const late = Promise.withResolvers<void>();
    const timer = this.#clock.timer(TURN_MAX_MS, late.resolve);
    try {
      await Promise.race([done.promise, late.promise]);
    } finally {
      timer.cancel();
    }
  }
}
