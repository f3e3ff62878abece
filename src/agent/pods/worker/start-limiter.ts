/**
 * Limits how many pods start at the same time while the CPUs are busy. Pods that started together would share the CPUs,
 * so that each of them would be ready as late as the last.
 */
import { readFileSync } from "node:fs";
import type { Clock, Timer } from "../../../std/time/clock.ts";

export interface StartLimiterOptions {
  readonly clock: Clock;
  /** Slots that are available however busy the CPUs are. */
  readonly minConcurrent: number;
  /** Whether the CPUs are busy. */
  readonly isBusy: () => boolean;
}

interface Waiter {
  readonly priority: number;
  readonly start: () => void;
}

/** Time after which the load of one more starting pod is measurable. */
const RECHECK_MS = 20;
/**
 * A slot is released after this time, twice that of a start on an idle node: the pod may wait for something slow, and
 * if other processes keep the CPUs busy, many starting pods get a larger share of them than few.
 */
const SLOT_MS_MAX = 500;

export class StartLimiter implements Disposable {
  readonly #options: StartLimiterOptions;
  /** Slots in use. */
  readonly #slots = new Set<object>();
  /** In the order of their requests; bounded by the pods of the node. */
  readonly #waiting = new Set<Waiter>();
  #timer: Timer | undefined;
  /** When the last slot was taken, on the monotonic clock. */
  #lastAcquiredAt = Number.NEGATIVE_INFINITY;

  constructor(options: StartLimiterOptions) {
    this.#options = options;
  }

  /** Resolves with a slot, which the caller disposes of; rejects with the signal's reason. */
  async acquire(priority: number, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#waiting.size === 0 && this.#hasSlot()) return this.#take();
    return await this.#wait(priority, signal);
  }

  #take(): Disposable {
    const slot = {};
    const end = (): void => {
      timer.cancel();
      if (this.#slots.delete(slot)) this.#startNext();
    };
    this.#slots.add(slot);
    this.#lastAcquiredAt = this.#options.clock.monotonic();
    const timer = this.#options.clock.timer(SLOT_MS_MAX, end);
    return { [Symbol.dispose]: end };
  }

  #hasSlot(): boolean {
    const { clock, minConcurrent, isBusy } = this.#options;
    if (this.#slots.size < minConcurrent) return true;
    return clock.monotonic() - this.#lastAcquiredAt >= RECHECK_MS && !isBusy();
  }

  #wait(priority: number, signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      const waiting: Waiter = {
        priority,
        start: () => {
          signal.removeEventListener("abort", cancel);
          resolve(this.#take());
        },
      };
      const cancel = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      signal.addEventListener("abort", cancel, { once: true });
      this.#waiting.add(waiting);
      this.#scheduleRecheck();
    });
  }

  #startNext(): void {
    const [first] = [...this.#waiting].sort((a, b) => b.priority - a.priority);
    if (first === undefined) return;
    if (this.#hasSlot()) {
      this.#waiting.delete(first);
      first.start();
    }
    this.#scheduleRecheck();
  }

  #scheduleRecheck(): void {
    if (this.#waiting.size === 0) return;
    this.#timer ??= this.#options.clock.timer(RECHECK_MS, () => {
      this.#timer = undefined;
      this.#startNext();
    });
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }
}

/** Whether more threads are runnable at this moment than there are CPUs. */
export function isCpuBusy(cpus: number): boolean {
  try {
    const [, , , threads = ""] = readFileSync("/proc/loadavg", "latin1").split(" ");
    return Number.parseInt(threads, 10) > cpus;
  } catch {
    return false;
  }
}
