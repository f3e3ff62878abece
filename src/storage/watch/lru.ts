/**
 * Approximate LRU with a limit in bytes, for entries that can be created again. There are two generations: an entry
 * becomes young when it is used. When the young entries fill half the limit, old entries that are not young are
 * evicted, and the young become old.
 */
export class ApproximateLru<E> {
  readonly #half: number;
  readonly #costOf: (entry: E) => number;
  readonly #evict: (entry: E) => void;
  #young = new Set<E>();
  #old = new Set<E>();
  #bytes = 0;

  /** `costOf` is called again by `delete`, and must return the same value. */
  constructor(bytes: number, costOf: (entry: E) => number, evict: (entry: E) => void) {
    this.#half = bytes / 2;
    this.#costOf = costOf;
    this.#evict = evict;
  }

  /** Called when the entry is created or used. */
  touch(entry: E): void {
    if (this.#young.has(entry)) return;
    this.#young.add(entry);
    this.#bytes += this.#costOf(entry);
    if (this.#bytes <= this.#half) return;
    for (const old of this.#old) if (!this.#young.has(old)) this.#evict(old);
    this.#old = this.#young;
    this.#young = new Set();
    this.#bytes = 0;
  }

  /** Evicts the entry. */
  delete(entry: E): void {
    const young = this.#young.delete(entry);
    if (young) this.#bytes -= this.#costOf(entry);
    if (this.#old.delete(entry) || young) this.#evict(entry);
  }
}
