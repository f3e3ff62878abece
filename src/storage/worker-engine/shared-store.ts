/** A store whose revision other threads read from shared memory. */
import type {
  KeyValue,
  ListOptions,
  Page,
  Range,
  ReadOptions,
  Revision,
  ScanPart,
  Store,
  StoreStatus,
  WatchBatch,
  WriteOptions,
} from "../store.ts";
import { SharedRevision } from "./shared-revision.ts";

/**
 * Advances the shared revision before a caller receives a result: whatever a client of one thread has seen, a thread
 * that reads the shared revision afterwards waits for it. All uses of the store must pass through this one.
 */
export class SharedStore implements Store {
  readonly revision = new SharedRevision();
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
    this.current();
  }

  current(): Revision {
    const revision = this.#store.current();
    this.revision.advance(revision);
    return revision;
  }

  async get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    return this.#advanced(await this.#store.get(key, options));
  }

  async list(range: Range, options?: ListOptions): Promise<Page> {
    return this.#advanced(await this.#store.list(range, options));
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    for await (const part of this.#store.scan(range, options)) yield this.#advanced(part);
  }

  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    return this.#store.readVersion(key, modified);
  }

  create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    return this.#write(this.#store.create(key, value, options));
  }

  update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    return this.#write(this.#store.update(key, value, expected, options));
  }

  delete(key: string, expected: Revision): Promise<Revision> {
    return this.#write(this.#store.delete(key, expected));
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    for await (const batch of this.#store.watch(range, from, signal)) yield this.#advanced(batch);
  }

  async compact(before: Revision): Promise<void> {
    await this.#store.compact(before);
  }

  status(): StoreStatus | undefined {
    return this.#store.status?.();
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#store[Symbol.asyncDispose]();
  }

  /** A write that fails shows the current value. */
  async #write(writing: Promise<Revision>): Promise<Revision> {
    try {
      return await writing;
    } finally {
      this.current();
    }
  }

  #advanced<R>(result: R): R {
    this.current();
    return result;
  }
}
