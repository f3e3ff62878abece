/** Limits concurrent image pulls and their rate. */

import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";

export interface PullLimits {
  /** One pull at a time. */
  readonly serialize: boolean;
  /** Maximum of concurrent pulls that are not serialized; undefined: unlimited. */
  readonly parallel?: number | undefined;
  /** Pulls per second; 0 is unlimited. */
  readonly qps: number;
  readonly burst: number;
}

export class PullQueue {
  readonly #limit: number;
  readonly #bucket: TokenBucket | undefined;
  #running = 0;
  /** In the order of requests; at most one pull per container of the node. */
  readonly #waiting: (() => void)[] = [];

  constructor({ serialize, parallel, qps, burst }: PullLimits, clock: Clock) {
    this.#limit = serialize ? 1 : (parallel ?? Number.POSITIVE_INFINITY);
    this.#bucket = qps > 0 ? new TokenBucket(clock, qps, burst) : undefined;
  }

  /** Throws when the rate is exceeded, as in Kubernetes, instead of waiting. */
  takeToken(): void {
    if (this.#bucket?.take() === false) throw new Error("pull QPS exceeded");
  }

  /** Runs the work when a slot is free. A waiting call whose signal aborts leaves the queue. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#running >= this.#limit) await this.#waitForSlot(signal);
    else this.#running += 1;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /** A call that completes passes its slot to the first in the queue. */
  #waitForSlot(signal: AbortSignal): Promise<void> {
    const slot = Promise.withResolvers<void>();
    const leave = (): void => {
      const index = this.#waiting.indexOf(enter);
      if (index >= 0) this.#waiting.splice(index, 1);
      slot.reject(signal.reason);
    };
    const enter = (): void => {
      signal.removeEventListener("abort", leave);
      slot.resolve();
    };
    this.#waiting.push(enter);
    signal.addEventListener("abort", leave, { once: true });
    return slot.promise;
  }
}
