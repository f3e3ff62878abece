import type { Clock, Timer } from "./clock.ts";

interface Entry {
  readonly key: string;
  /** When it is due, on the monotonic clock. */
  dueAt: number;
  /** When the heap pops it: never later than `dueAt`. */
  queuedAt: number;
  cancelled: boolean;
}

/**
 * A timer for each key, on one timer of the clock. Postponing a key costs nothing: the heap pops it at its old time
 * and queues it again then. Suits deadlines that every heartbeat postpones.
 */
export class KeyTimers implements Disposable {
  readonly #clock: Clock;
  readonly #onDue: (key: string) => void;
  readonly #entries = new Map<string, Entry>();
  /** A binary heap by `queuedAt`. */
  #heap: Entry[] = [];
  #timer: { readonly at: number; readonly timer: Timer } | undefined;

  constructor(clock: Clock, onDue: (key: string) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** The key is due after `milliseconds`; replaces an earlier time. */
  set(key: string, milliseconds: number): void {
    const dueAt = this.#clock.monotonic() + Math.max(0, milliseconds);
    const existing = this.#entries.get(key);
    if (existing !== undefined && dueAt >= existing.queuedAt) {
      existing.dueAt = dueAt;
      return;
    }
    if (existing !== undefined) existing.cancelled = true;
    const entry = { key, dueAt, queuedAt: dueAt, cancelled: false };
    this.#entries.set(key, entry);
    this.#push(entry);
    this.#dropCancelled();
    this.#arm();
  }

  delete(key: string): boolean {
    const existing = this.#entries.get(key);
    if (existing === undefined) return false;
    existing.cancelled = true;
    this.#entries.delete(key);
    this.#dropCancelled();
    if (this.#entries.size === 0) this.clear();
    return true;
  }

  /** Cancels all keys. */
  clear(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#entries.clear();
    this.#heap = [];
  }

  [Symbol.dispose](): void {
    this.clear();
  }

  #arm(): void {
    const at = this.#heap[0]?.queuedAt;
    if (at === undefined || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.timer(at - this.#clock.monotonic(), () => this.#fire());
    this.#timer = { at, timer };
  }

  #fire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const due: string[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.queuedAt <= now; first = this.#heap[0]) {
      this.#pop();
      if (first.cancelled) continue;
      if (first.dueAt > now) {
        first.queuedAt = first.dueAt;
        this.#push(first);
      } else {
        this.#entries.delete(first.key);
        due.push(first.key);
      }
    }
    this.#arm();
    for (const key of due) this.#onDue(key);
  }

  /** Cancelled entries may fill about half of the heap. */
  #dropCancelled(): void {
    if (this.#heap.length <= 2 * this.#entries.size + 16) return;
    const kept = this.#heap.filter((entry) => !entry.cancelled);
    this.#heap = [];
    for (const entry of kept) this.#push(entry);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]!.queuedAt <= entry.queuedAt) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.queuedAt < heap[child]!.queuedAt) child++;
      if (heap[child]!.queuedAt >= last.queuedAt) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}
