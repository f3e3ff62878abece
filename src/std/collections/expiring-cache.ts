import type { Clock } from "../time/clock.ts";

interface Entry<V> {
  readonly value: V;
  readonly until: number;
}

/** An LRU cache whose entries expire. Holds at most `entriesMax` entries. */
export class ExpiringCache<V> {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #entriesMax: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry<V>>();

  constructor(entriesMax: number, clock: Pick<Clock, "monotonic">) {
    this.#entriesMax = entriesMax;
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.until <= this.#clock.monotonic()) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** `milliseconds` is how long the entry lives; 0 or less removes it. */
  set(key: string, value: V, milliseconds: number): void {
    this.#entries.delete(key);
    if (milliseconds <= 0) return;
    this.#entries.set(key, { value, until: this.#clock.monotonic() + milliseconds });
    if (this.#entries.size <= this.#entriesMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}
