import type { Clock, Timer } from "../std/time/clock.ts";
import type { Revision } from "./store.ts";

/** A value whose time to live is over, unless the key has another revision by now. */
export interface ExpiredValue {
  readonly key: string;
  readonly revision: Revision;
}

/** Values expire in batches, once a second. */
const GRANULARITY_MS = 1000;

/**
 * Calls the store with the values whose time to live is over, all of one second at once. An entry stays when its value
 * is written again; it falls due with an outdated revision, which the store ignores. So the number of entries is
 * bounded by the writes with a time to live within that time. The time that is left is measured from the call of
 * `schedule` by the monotonic clock: when the host's clock is set, values live neither shorter nor longer.
 */
export class Expiry {
  readonly #clock: Clock;
  readonly #expire: (due: readonly ExpiredValue[]) => void;
  /** By the second of the monotonic clock in which they expire. */
  readonly #due = new Map<number, ExpiredValue[]>();
  /** Those seconds: a binary heap, earliest first. */
  readonly #heap: number[] = [];
  #timer: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, expire: (due: readonly ExpiredValue[]) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  /** `at` is in milliseconds since 1970. */
  schedule(key: string, revision: Revision, at: number): void {
    const due = at - this.#clock.now() + this.#clock.monotonic();
    const second = Math.ceil(due / GRANULARITY_MS) * GRANULARITY_MS;
    const expiring = this.#due.get(second);
    if (expiring !== undefined) {
      expiring.push({ key, revision });
      return;
    }
    this.#due.set(second, [{ key, revision }]);
    this.#push(second);
    this.#arm();
  }

  close(): void {
    this.#timer?.timer.cancel();
    this.#heap.length = 0;
    this.#due.clear();
  }

  #arm(): void {
    const at = this.#heap[0];
    if (at === undefined || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: this.#clock.timer(at - this.#clock.monotonic(), () => this.#run()) };
  }

  #run(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let next = this.#heap[0]; next !== undefined && next <= now; next = this.#heap[0]) {
      this.#pop();
      const due = this.#due.get(next) ?? [];
      this.#due.delete(next);
      this.#expire(due);
    }
    this.#arm();
  }

  #push(second: number): void {
    const heap = this.#heap;
    let child = heap.push(second) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (heap[parent]! <= heap[child]!) break;
      [heap[parent], heap[child]] = [heap[child]!, heap[parent]!];
      child = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let parent = 0;
    for (;;) {
      let child = 2 * parent + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
      if (last <= heap[child]!) break;
      heap[parent] = heap[child]!;
      parent = child;
    }
    heap[parent] = last;
  }
}
