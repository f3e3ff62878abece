/** An event that waits; the same object in every queue it waits in. */
export interface Queued {
  /** Of the object as stored. */
  readonly size: number;
}

export interface SlowReader {
  /** Of what waits for it. */
  readonly queuedBytes: number;
  /** Gives up its queue, calling `remove` for all that is in it. */
  overflow(): void;
}

/**
 * What waits for the watchers of all caches. An event is counted once however many wait for it, as it is in memory.
 * When there is too much, the watcher for which most waits is closed.
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
