/** Frees the buffers of copied data. */

/**
 * Between two collections. V8 adds the buffers since its last marking to the heap, and its limit may be 8 MiB above
 * what is live: with 16 MiB some processes marked the heap after each collection.
 */
const INTERVAL_BYTES = 4 * 2 ** 20;

export type CollectYoung = (options: { readonly type: "minor" }) => unknown;

/**
 * Counts bytes that are copied from one connection to another. Their buffers are garbage at once, but V8 collects young
 * objects only when their own part of the heap is full, and counts buffers as growth: it would mark the whole heap for
 * every 64 MiB, which took more CPU time than the copying. A collection of young objects takes a millisecond.
 */
export class CopiedBytes {
  readonly #collect: CollectYoung | undefined;
  #bytes = 0;

  /** Does nothing without `collect`, that is, without `--expose-gc`. */
  constructor(collect: CollectYoung | undefined = globalThis.gc) {
    this.#collect = collect;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < INTERVAL_BYTES) return;
    this.#bytes = 0;
    this.#collect?.({ type: "minor" });
  }
}

/** Of this process, which has one heap. */
export const copiedBytes = new CopiedBytes();
