/**
 * Approximate LRU with a limit in bytes, for entries that can be created again. There are two generations: an entry
 * becomes young when it is used. When the young entries fill half the limit, old entries that are not young are
 * evicted, and the young become old. The cost of an entry is counted again at each use, since it may have grown. The
 * limit may change at any time.
 */
export class ApproximateLru<E> {
  readonly #limit: () => number;
  readonly #costOf: (entry: E) => number;
  readonly #evict: (entry: E) => void;
  /** With the cost of each as counted in `#bytes`. */
  #young = new Map<E, number>();
  #old = new Map<E, number>();
  #bytes = 0;

  constructor(limit: () => number, costOf: (entry: E) => number, evict: (entry: E) => void) {
    this.#limit = limit;
    this.#costOf = costOf;
    this.#evict = evict;
  }

  get size(): number {
    return new Set([...this.#young.keys(), ...this.#old.keys()]).size;
  }

  /** Called when the entry is created or used. */
  touch(entry: E): void {
    const cost = this.#costOf(entry);
    const counted = this.#young.get(entry);
    if (counted === cost) return;
    this.#young.set(entry, cost);
    this.#bytes += cost - (counted ?? 0);
    if (this.#bytes <= this.#limit() / 2) return;
    for (const old of this.#old.keys()) if (!this.#young.has(old)) this.#evict(old);
    this.#old = this.#young;
    this.#young = new Map();
    this.#bytes = 0;
  }

  /** Evicts all entries. */
  clear(): void {
    const entries = [this.#old, this.#young];
    this.#old = new Map();
    this.#young = new Map();
    this.#bytes = 0;
    for (const generation of entries) for (const entry of generation.keys()) this.#evict(entry);
  }

  /** Evicts the entry. */
  delete(entry: E): void {
    const counted = this.#young.get(entry);
    if (counted !== undefined) {
      this.#young.delete(entry);
      this.#bytes -= counted;
    }
    if (this.#old.delete(entry) || counted !== undefined) this.#evict(entry);
  }
}
