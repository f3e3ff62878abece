import { type Clock, sleepOn, type Timer } from "../../std/time/clock.ts";

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test moves it; timers run in the order of their times, deterministically. */
export class FakeClock implements Clock {
  #epoch: number;
  #elapsed = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();

  /** Starts at `now`, in milliseconds since 1970. */
  constructor(now: number = Date.UTC(2026, 0, 1)) {
    this.#epoch = now;
  }

  now(): number {
    return this.#epoch + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  /** Sets the time of day; the monotonic clock is not affected. */
  set(now: number): void {
    this.#epoch = now - this.#elapsed;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, milliseconds, signal);
  }

  timer(milliseconds: number, callback: () => void): Timer {
    const pending = { at: this.#elapsed + Math.max(0, milliseconds), order: this.#order++, callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** How many timers are pending; a test's last check that nothing was left behind. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Milliseconds until the next timer is due; undefined when none waits. */
  get untilNext(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.at - this.#elapsed);
  }

  /**
   * Moves time forward, running each timer that falls due at its own time. What a timer's callback causes through
   * promises settles before the next timer runs, so a loop of `await clock.sleep(1000)` makes all its iterations.
   */
  async advance(milliseconds: number): Promise<void> {
    const target = this.#elapsed + milliseconds;
    await settle();
    for (let next = this.#next(); next !== undefined && next.at <= target; next = this.#next()) {
      this.#pending.delete(next);
      this.#elapsed = Math.max(this.#elapsed, next.at);
      next.callback();
      await settle();
    }
    this.#elapsed = target;
  }

  #next(): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (first === undefined || pending.at < first.at || (pending.at === first.at && pending.order < first.order)) {
        first = pending;
      }
    }
    return first;
  }
}

/** Lets promise chains settle. A turn of the event loop runs every microtask; two turns cover one I/O operation. */
async function settle(): Promise<void> {
  for (let attempt = 0; attempt < 2; attempt++) await new Promise<void>((resolve) => setImmediate(resolve));
}
