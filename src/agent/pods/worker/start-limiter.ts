/**
 * Whose turn it is to start. While the processors have more to do than they can, pods that have begun come first: all
 * at once would run no sooner together, and each of them as late as the last.
 */
import { readFileSync } from "node:fs";
import type { Clock, Timer } from "../../../std/time/clock.ts";

export interface StartLimiterOptions {
  readonly clock: Clock;
  /** So many may be at it however busy the machine is. */
  readonly minConcurrent: number;
  /** Whether more would only get into each other's way. */
  readonly isBusy: () => boolean;
}

interface Waiter {
  readonly priority: number;
  readonly start: () => void;
}

/** How busy the machine is with one more shows after so long. */
const RECHECK_MS = 20;
/**
 * After this long, twice what a start takes where nothing else goes on, a turn no longer keeps others waiting: what it
 * waits for may take long, and of processors that others keep busy few would get less than many.
 */
const SLOT_MS_MAX = 500;

export class StartLimiter implements Disposable {
  readonly #options: StartLimiterOptions;
  /** Those that keep others waiting. */
  readonly #turns = new Set<object>();
  /** In the order in which they came; bounded by the pods of the node. */
  readonly #waiting = new Set<Waiter>();
  #timer: Timer | undefined;
  /** When the last turn began, on the monotonic clock. */
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(options: StartLimiterOptions) {
    this.#options = options;
  }

  /** Resolves with the turn, which ends when it is disposed of; rejects with the signal's reason. */
  async acquire(priority: number, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#waiting.size === 0 && this.#hasRoom()) return this.#turn();
    return await this.#wait(priority, signal);
  }

  #turn(): Disposable {
    const turn = {};
    const end = (): void => {
      timer.cancel();
      if (this.#turns.delete(turn)) this.#next();
    };
    this.#turns.add(turn);
    this.#begunAt = this.#options.clock.monotonic();
    const timer = this.#options.clock.timer(SLOT_MS_MAX, end);
    return { [Symbol.dispose]: end };
  }

  #hasRoom(): boolean {
    const { clock, minConcurrent: least, isBusy } = this.#options;
    if (this.#turns.size < least) return true;
    return clock.monotonic() - this.#begunAt >= RECHECK_MS && !isBusy();
  }

  #wait(priority: number, signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      const waiting: Waiter = {
        priority,
        start: () => {
          signal.removeEventListener("abort", give);
          resolve(this.#turn());
        },
      };
      const give = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      signal.addEventListener("abort", give, { once: true });
      this.#waiting.add(waiting);
      this.#lookAgain();
    });
  }

  #next(): void {
    const [first] = [...this.#waiting].sort((a, b) => b.priority - a.priority);
    if (first === undefined) return;
    if (this.#hasRoom()) {
      this.#waiting.delete(first);
      first.start();
    }
    this.#lookAgain();
  }

  #lookAgain(): void {
    if (this.#waiting.size === 0) return;
    this.#timer ??= this.#options.clock.timer(RECHECK_MS, () => {
      this.#timer = undefined;
      this.#next();
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }
}

/** More wants to run at this moment than there are processors. */
export function isCpuBusy(processors: number): boolean {
  try {
    const [, , , threads = ""] = readFileSync("/proc/loadavg", "latin1").split(" ");
    return Number.parseInt(threads, 10) > processors;
  } catch {
    return false;
  }
}
