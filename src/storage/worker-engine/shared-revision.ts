/** The revision of a store in memory that all threads of a process share. */
import type { Revision } from "../store.ts";

/** Written by the thread that owns the store; other threads read it without a message. */
export class SharedRevision {
  /** Is passed to other threads. */
  readonly memory: SharedArrayBuffer;
  readonly #cell: BigInt64Array;
  /** The owner's copy. */
  #latest = 0;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cell = new BigInt64Array(memory);
  }

  read(): Revision {
    return Number(Atomics.load(this.#cell, 0)) as Revision;
  }

  /** Called by the owner only. */
  advance(revision: Revision): void {
    if (revision <= this.#latest) return;
    this.#latest = revision;
    Atomics.store(this.#cell, 0, BigInt(revision));
  }
}
