import type { Clock, Timer } from "../std/clock.ts";
import type { Revision } from "./store.ts";

interface Entry {
  readonly at: number;
  readonly key: string;
  readonly revision: Revision;
}

/** Keys fall due together once a second, so that a thousand events of the same minute cost few writes. */
const GRANULARITY_MS = 1000;

/**
 * Tells a store when a value's time to live is over. A value that was written again since is not removed here: its
 * entry falls due with a revision that is no longer the key's, and the store ignores it. So the queue is bounded by the
 * writes with a time to live that happen within that time.
 */
export class Expiry {
  readonly #clock: Clock;
  readonly #expire: (key: string, revision: Revision, at: number) => void;
  /** A binary heap, earliest first. */
  readonly #heap: Entry[] = [];
  #timer: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, expire: (key: string, revision: Revision, at: number) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  /** `at` is in milliseconds since 1970. */
  add(key: string, revision: Revision, at: number): void {
    const heap = this.#heap;
    let child = heap.push({ at, key, revision }) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (heap[parent]!.at <= heap[child]!.at) break;
      [heap[parent], heap[child]] = [heap[child]!, heap[parent]!];
      child = parent;
    }
    this.#arm();
  }

  close(): void {
    this.#timer?.timer.cancel();
    this.#heap.length = 0;
  }

  #arm(): void {
    const next = this.#heap[0];
    if (next === undefined) return;
    const at = Math.ceil(next.at / GRANULARITY_MS) * GRANULARITY_MS;
    if (this.#timer !== undefined && this.#timer.at <= at) return;
    this.#timer?.timer.cancel();
    this.#timer = { at, timer: this.#clock.timer(at - this.#clock.now(), () => this.#run()) };
  }

  #run(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    for (let next = this.#heap[0]; next !== undefined && next.at <= now; next = this.#heap[0]) {
      this.#pop();
      this.#expire(next.key, next.revision, next.at);
    }
    this.#arm();
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let parent = 0;
    for (;;) {
      let child = 2 * parent + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++;
      if (last.at <= heap[child]!.at) break;
      heap[parent] = heap[child]!;
      parent = child;
    }
    heap[parent] = last;
  }
}
