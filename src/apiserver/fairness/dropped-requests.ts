/** Computes `Retry-After` from the requests that a priority level rejected lately. */
import type { Clock } from "../../std/time/clock.ts";

const RETRY_AFTER_MAX_S = 32;

interface RejectedSecond {
  readonly second: number;
  readonly requests: number;
}

export class DroppedRequests {
  readonly #clock: Clock;
  /** By priority level; as many as there are. */
  readonly #levels = new Map<string, LevelRejections>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a rejected request; returns the seconds after which the client may retry. */
  record(level: string): number {
    let rejections = this.#levels.get(level);
    if (rejections === undefined) {
      rejections = new LevelRejections();
      this.#levels.set(level, rejections);
    }
    rejections.record(Math.floor(this.#clock.now() / 1000));
    return rejections.retryAfter;
  }

  /** Forgets all other levels. */
  retain(levels: ReadonlySet<string>): void {
    for (const level of this.#levels.keys()) if (!levels.has(level)) this.#levels.delete(level);
  }
}

class LevelRejections {
  retryAfter = 1;
  #raisedAt = 0;
  #second = 0;
  #requests = 0;
  /** The last 32 seconds, oldest first. */
  #history: RejectedSecond[] = [];

  record(second: number): void {
    if (second === this.#second) {
      this.#requests++;
      return;
    }
    this.#history.push({ second: this.#second, requests: this.#requests });
    const oldest = this.#second - RETRY_AFTER_MAX_S;
    if (this.#history[0]!.second < oldest) this.#history = this.#history.filter((past) => past.second >= oldest);
    this.#second = second;
    this.#requests = 1;
    this.#adjust(second);
  }

  /** Doubles the delay when many requests were rejected within it, and shortens it by a second when few were. */
  #adjust(now: number): void {
    const since = now - this.retryAfter;
    const rejected = this.#history
      .filter(({ second }) => second >= since && second < now)
      .reduce((sum, { requests }) => sum + requests, 0);
    if (now - this.#raisedAt >= this.retryAfter && rejected >= 3 * this.retryAfter) {
      this.retryAfter = Math.min(2 * this.retryAfter, RETRY_AFTER_MAX_S);
      this.#raisedAt = now;
    } else if (rejected < this.retryAfter && this.retryAfter > 1) {
      this.retryAfter--;
    }
  }
}
