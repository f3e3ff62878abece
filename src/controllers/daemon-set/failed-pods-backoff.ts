/** Delays between deletions of failed pods on one node: a pod that its agent refuses is not created in a loop. */
import type { Clock } from "../../std/time/clock.ts";

const INITIAL_MS = 1000;
const MAX_MS = 15 * 60_000;
const SWEEP_INTERVAL_MS = 60_000;

interface Entry {
  readonly delayMs: number;
  /** On the monotonic clock. */
  readonly since: number;
}

/** Entries expire half an hour after the last failure, which bounds their number. */
export class FailedPodsBackoff {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #sweptAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until the next deletion; 0 if it may happen now, which doubles the delay of the one after it. */
  next(key: string): number {
    const now = this.#clock.monotonic();
    this.#sweep(now);
    const entry = this.#entries.get(key);
    if (entry === undefined || isExpired(entry, now)) {
      this.#entries.set(key, { delayMs: INITIAL_MS, since: now });
      return 0;
    }
    if (now - entry.since < entry.delayMs) return entry.delayMs;
    this.#entries.set(key, { delayMs: Math.min(entry.delayMs * 2, MAX_MS), since: now });
    return 0;
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_INTERVAL_MS) return;
    this.#sweptAt = now;
    for (const [key, entry] of this.#entries) if (isExpired(entry, now)) this.#entries.delete(key);
  }
}

function isExpired({ since }: Entry, now: number): boolean {
  return now - since > 2 * MAX_MS;
}
