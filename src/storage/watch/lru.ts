/**
 * What can be made again is kept while there is room for it; what was not used for longest goes first, roughly: entries
 * are young when used, and when the young fill half the budget, those that are old and were not used since are
 * forgotten, and the young become old.
 */
export class ApproximateLru<E> {
  readonly #half: number;
  readonly #costOf: (entry: E) => number;
  readonly #forget: (entry: E) => void;
  #young = new Set<E>();
  #old = new Set<E>();
  #bytes = 0;

  /** `costOf` is asked again at `release`, and must say the same. */
  constructor(bytes: number, costOf: (entry: E) => number, forget: (entry: E) => void) {
    this.#half = bytes / 2;
    this.#costOf = costOf;
    this.#forget = forget;
  }

  /** Says that the entry was made, or is used. */
  touch(entry: E): void {
    if (this.#young.has(entry)) return;
    this.#young.add(entry);
    this.#bytes += this.#costOf(entry);
    if (this.#bytes <= this.#half) return;
    for (const old of this.#old) if (!this.#young.has(old)) this.#forget(old);
    this.#old = this.#young;
    this.#young = new Set();
    this.#bytes = 0;
  }

  /** Forgets the entry at once: nobody will ask for it soon. */
  delete(entry: E): void {
    const young = this.#young.delete(entry);
    if (young) this.#bytes -= this.#costOf(entry);
    if (this.#old.delete(entry) || young) this.#forget(entry);
  }
}
