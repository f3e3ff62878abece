/** A store whose values are encrypted as the configuration says. Keys and revisions are not. */
import {
  type KeyValue,
  type ListOptions,
  type Page,
  type Range,
  type ReadOptions,
  type Revision,
  type ScanPart,
  type Store,
  StoreError,
  type StoreStatus,
  type WatchBatch,
  type WatchEvent,
  type WriteOptions,
} from "../store.ts";
import type { Transformed, Transformer } from "./transformer.ts";

/** Returns the transformer of the value at a key; undefined: it is plain text. May change while the server runs. */
export type TransformerOfKey = (key: string) => Transformer | undefined;

export class EncryptedStore implements Store {
  readonly #store: Store;
  readonly #transformerOf: TransformerOfKey;

  constructor(store: Store, transformerOf: TransformerOfKey) {
    this.#store = store;
    this.#transformerOf = transformerOf;
  }

  current(): Revision {
    return this.#store.current();
  }

  async get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    const item = await this.#store.get(key, options);
    return item && this.#decrypt(item, "");
  }

  async list(range: Range, options?: ListOptions): Promise<Page> {
    const page = await this.#store.list(range, options);
    return { ...page, items: page.items.map((item) => this.#decrypt(item)) };
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    for await (const part of this.#store.scan(range, options)) {
      yield { ...part, items: part.items.map((item) => this.#decrypt(item)) };
    }
  }

  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    const value = this.#store.readVersion(key, modified);
    return value && this.#decryptValue(key, value, transformPrefix(key)).value;
  }

  async create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    return await this.#decryptConflicts(this.#store.create(key, this.#encrypt(key, value), options));
  }

  async update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    return await this.#decryptConflicts(this.#store.update(key, this.#encrypt(key, value), expected, options));
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    return await this.#decryptConflicts(this.#store.delete(key, expected));
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    for await (const batch of this.#store.watch(range, from, signal)) {
      yield { ...batch, events: batch.events.map((event) => this.#decryptEvent(event)) };
    }
  }

  async compact(before: Revision): Promise<void> {
    await this.#store.compact(before);
  }

  status(): StoreStatus | undefined {
    return this.#store.status?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  #encrypt(key: string, value: Uint8Array): Uint8Array {
    return this.#transformerOf(key)?.encrypt(value, key) ?? value;
  }

  /** Throws a `StoreError` of code `corrupt`, whose message begins with `prefix`. */
  #decrypt(item: KeyValue, prefix = transformPrefix(item.key)): KeyValue {
    if (this.#transformerOf(item.key) === undefined) return item;
    const { value, isStale } = this.#decryptValue(item.key, item.value, prefix);
    return { ...item, value, ...(isStale ? { isStale } : {}) };
  }

  #decryptValue(key: string, value: Uint8Array, prefix: string): Transformed {
    const transformer = this.#transformerOf(key);
    if (transformer === undefined) return { value, isStale: false };
    try {
      return transformer.decrypt(value, key);
    } catch (cause) {
      throw new StoreError("undecryptable", `${prefix}${(cause as Error).message}`, { cause });
    }
  }

  /** A previous value that cannot be decrypted is left out of an update. */
  #decryptEvent(event: WatchEvent): WatchEvent {
    if (event.type === "delete") return { ...event, previous: this.#tryDecrypt(event.previous) };
    const previous = event.previous && this.#tryDecrypt(event.previous);
    return {
      ...event,
      item: this.#tryDecrypt(event.item),
      previous: previous?.failure === undefined ? previous : undefined,
    };
  }

  #tryDecrypt(item: KeyValue): KeyValue {
    try {
      return this.#decrypt(item);
    } catch (failure) {
      return { ...item, failure: failure as StoreError };
    }
  }

  /** The error of a conflict has the current value. */
  async #decryptConflicts<R>(write: Promise<R>): Promise<R> {
    try {
      return await write;
    } catch (error) {
      if (!(error instanceof StoreError) || error.current === undefined) throw error;
      const current = this.#tryDecrypt(error.current);
      throw new StoreError(error.code, error.message, { cause: error, current });
    }
  }
}

function transformPrefix(key: string): string {
  return `unable to transform key ${JSON.stringify(key)}: `;
}
