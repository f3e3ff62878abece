import type { RandomSource } from "../crypto/random.ts";

export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** Each delay is the one before times this; 2 when absent. */
  readonly factor?: number;
  /** Up to this share of the delay is added at random, so that clients do not retry all at once; 0 when absent. */
  readonly jitter?: number;
}

/** Delays that grow from `initialMs` to `maxMs` until `reset`. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Pick<RandomSource, "fraction">;
  #next: number;

  constructor(options: BackoffOptions, random: Pick<RandomSource, "fraction">) {
    this.#options = options;
    this.#random = random;
    this.#next = options.initialMs;
  }

  /** The delay to wait now, in milliseconds, jitter included; jitter may exceed `maxMs`. */
  next(): number {
    const { maxMs, factor = 2, jitter = 0 } = this.#options;
    const delay = Math.min(this.#next, maxMs);
    this.#next = Math.min(delay * factor, maxMs);
    return delay * (1 + jitter * this.#random.fraction());
  }

  reset(): void {
    this.#next = this.#options.initialMs;
  }
}
