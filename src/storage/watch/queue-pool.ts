/** An event in the queue of a watcher; all queues share one object. */
export interface Queued {
  /** Bytes of the stored value. */
  readonly size: number;
}

export interface SlowReader {
  /** Bytes of the events in its queue. */
  readonly queuedBytes: number;
  /** Drops its queue, and calls `remove` for each event in it. */
  overflow(): void;
}

/**
 * Bounds the bytes in the queues of all watchers together. An event in several queues counts once, as in memory. Above
 * the limit the watcher with the largest queue is closed.
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

  add(reader: SlowReader, event: Queued): void {
    const queues = this.#queues.get(event) ?? 0;
    this.#queues.set(event, queues + 1);
    this.#readers.add(reader);
    if (queues === 0) this.#bytes += event.size;
    while (this.#bytes > this.#bytesMax) {
      let slowest = reader;
      for (const other of this.#readers) if (other.queuedBytes > slowest.queuedBytes) slowest = other;
      this.#readers.delete(slowest);
      slowest.overflow();
    }
  }

  remove(reader: SlowReader, event: Queued): void {
    const queues = this.#queues.get(event) ?? 0;
    if (queues > 1) this.#queues.set(event, queues - 1);
    else if (this.#queues.delete(event)) this.#bytes -= event.size;
    if (reader.queuedBytes === 0) this.#readers.delete(reader);
  }
}
