/** The object of an event in the queue of a watcher; all queues share one. */
export interface Queued {
  /** Bytes of the stored value. */
  readonly size: number;
  /** Whether the cache holds the object anyway, so that a queue costs nothing. Absent for objects of no cache. */
  readonly isCurrent?: boolean;
}

export interface SlowReader {
  /** Bytes of the events in its queue. */
  readonly queuedBytes: number;
  /** Drops its queue, and calls `remove` for each event in it. */
  overflow(): void;
}

/**
 * Bounds the bytes that the queues of all watchers keep in memory together. An object in several queues counts once,
 * and not while it is the current one of its key. Above the limit the watcher with the largest queue is closed.
 */
export class QueuePool {
  readonly #bytesMax: number;
  readonly #queues = new Map<Queued, number>();
  readonly #readers = new Set<SlowReader>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(reader: SlowReader, object: Queued): void {
    const queues = this.#queues.get(object) ?? 0;
    this.#queues.set(object, queues + 1);
    this.#readers.add(reader);
    if (queues === 0 && object.isCurrent !== true) this.#grow(object.size);
  }

  /** Counts a queued object that is no longer current; call once, after `isCurrent` changed. */
  supersede(object: Queued): void {
    if (this.#queues.has(object)) this.#grow(object.size);
  }

  remove(reader: SlowReader, object: Queued): void {
    const queues = this.#queues.get(object) ?? 0;
    if (queues > 1) this.#queues.set(object, queues - 1);
    else if (this.#queues.delete(object) && object.isCurrent !== true) this.#bytes -= object.size;
    if (reader.queuedBytes === 0) this.#readers.delete(reader);
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    while (this.#bytes > this.#bytesMax) {
      let slowest: SlowReader | undefined;
      for (const reader of this.#readers) {
        if (slowest === undefined || reader.queuedBytes > slowest.queuedBytes) slowest = reader;
      }
      if (slowest === undefined) return;
      this.#readers.delete(slowest);
      slowest.overflow();
    }
  }
}
