/** How many images are pulled at once, and how often the registries are asked. */

import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";

export interface PullLimits {
  /** One after the other. */
  readonly serialize: boolean;
  /** How many at once where they are not serialized; undefined: any number. */
  readonly parallel?: number | undefined;
  /** Pulls per second; 0 is unlimited. */
  readonly qps: number;
  readonly burst: number;
}

export class PullQueue {
  readonly #places: number;
  readonly #bucket: TokenBucket | undefined;
  #pulling = 0;
  /** In the order they came; at most one pull per container of the node waits. */
  readonly #waiting: (() => void)[] = [];

  constructor({ serialize, parallel, qps, burst }: PullLimits, clock: Clock) {
    this.#places = serialize ? 1 : (parallel ?? Number.POSITIVE_INFINITY);
    this.#bucket = qps > 0 ? new TokenBucket(clock, qps, burst) : undefined;
  }

  /** Throws when the registries have been asked too often; nobody waits for that. */
  takeToken(): void {
    if (this.#bucket?.take() === false) throw new Error("pull QPS exceeded");
  }

  /** Does the work when it is its turn; whoever gives up loses the turn. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#pulling >= this.#places) await this.#turn(signal);
    else this.#pulling += 1;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#pulling -= 1;
      else next();
    }
  }

  /** The place of one that ends goes to the next in the queue. */
  #turn(signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    const giveUp = (): void => {
      const place = this.#waiting.indexOf(mine);
      if (place >= 0) this.#waiting.splice(place, 1);
      turn.reject(signal.reason);
    };
    const mine = (): void => {
      signal.removeEventListener("abort", giveUp);
      turn.resolve();
    };
    this.#waiting.push(mine);
    signal.addEventListener("abort", giveUp, { once: true });
    return turn.promise;
  }
}
