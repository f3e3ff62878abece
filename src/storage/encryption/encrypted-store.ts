/** A store whose values are encrypted as the configuration says. Keys and revisions are not. */
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
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

interface WrittenValue {
  /** A value that was copied to another key is not authentic. */
  readonly key: string;
  readonly transformer: Transformer;
  readonly value: Uint8Array;
}

export class EncryptedStore implements Store {
  readonly #store: Store;
  readonly #transformerOf: TransformerOfKey;
  /** What this server encrypted: its own watches and updates read it again, twice or more, while the store keeps it. */
  readonly #written = new WeakMap<Uint8Array, WrittenValue>();
  readonly readRevision?: () => Promise<Revision>;

  constructor(store: Store, transformerOf: TransformerOfKey) {
    this.#store = store;
    this.#transformerOf = transformerOf;
    if (store.readRevision !== undefined) this.readRevision = store.readRevision.bind(store);
  }

  current(): Revision {
    return this.#store.current();
  }

  async get(key: string, options?: ReadOptions): Promise<KeyValue | undefined> {
    const item = await this.#store.get(key, options);
    return item && (await this.#decrypt(item, ""));
  }

  async list(range: Range, options?: ListOptions): Promise<Page> {
    const page = await this.#store.list(range, options);
    return { ...page, items: await this.#decryptAll(page.items) };
  }

  async *scan(range: Range, options?: ReadOptions): AsyncIterable<ScanPart> {
    for await (const part of this.#store.scan(range, options)) {
      yield { ...part, items: await this.#decryptAll(part.items) };
    }
  }

  /** Undefined also for a value whose key is in a plugin: such values are pinned. */
  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    const value = this.#store.readVersion(key, modified);
    const decrypted = value && this.#decryptValue(key, value, transformPrefix(key));
    if (!(decrypted instanceof Promise)) return decrypted?.value;
    decrypted.catch(() => {});
    return undefined;
  }

  async create(key: string, value: Uint8Array, options?: WriteOptions): Promise<Revision> {
    const encrypted = this.#encrypt(key, value);
    const bytes = encrypted instanceof Promise ? await encrypted : encrypted;
    return await this.#decryptConflicts(this.#store.create(key, bytes, options));
  }

  async update(key: string, value: Uint8Array, expected: Revision, options?: WriteOptions): Promise<Revision> {
    const encrypted = this.#encrypt(key, value);
    const bytes = encrypted instanceof Promise ? await encrypted : encrypted;
    return await this.#decryptConflicts(this.#store.update(key, bytes, expected, options));
  }

  async delete(key: string, expected: Revision): Promise<Revision> {
    return await this.#decryptConflicts(this.#store.delete(key, expected));
  }

  async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
    for await (const batch of this.#store.watch(range, from, signal)) {
      const events: WatchEvent[] = [];
      for (const event of batch.events) events.push(await this.#decryptEvent(event));
      yield { ...batch, events };
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

  /** Throws or rejects with a `StoreError` of code `unencryptable`. */
  #encrypt(key: string, value: Uint8Array): MaybePromise<Uint8Array> {
    const transformer = this.#transformerOf(key);
    if (transformer === undefined) return value;
    try {
      const encrypted = transformer.encrypt(value, key);
      if (encrypted instanceof Promise) return encrypted.catch(failEncryption);
      if (transformer.isLocal === true && encrypted !== value)
        this.#written.set(encrypted, { transformer, key, value });
      return encrypted;
    } catch (error) {
      return failEncryption(error);
    }
  }

  /** One after the other: a provider may call its plugin for each. */
  async #decryptAll(items: readonly KeyValue[]): Promise<readonly KeyValue[]> {
    const decrypted: KeyValue[] = [];
    for (const item of items) {
      const found = this.#decrypt(item);
      decrypted.push(found instanceof Promise ? await found : found);
    }
    return decrypted;
  }

  /** Throws or rejects with a `StoreError` of code `undecryptable`, whose message begins with `prefix`. */
  #decrypt(item: KeyValue, prefix = transformPrefix(item.key)): MaybePromise<KeyValue> {
    if (this.#transformerOf(item.key) === undefined) return item;
    return andThen(this.#decryptValue(item.key, item.value, prefix, item), ({ value, isStale, isPinned }) => ({
      ...item,
      value,
      ...(isStale ? { isStale } : {}),
      ...(isPinned === true ? { isPinned } : {}),
    }));
  }

  #decryptValue(key: string, value: Uint8Array, prefix: string, current?: KeyValue): MaybePromise<Transformed> {
    const transformer = this.#transformerOf(key);
    if (transformer === undefined) return { value, isStale: false };
    const written = this.#written.get(value);
    if (written?.transformer === transformer && written.key === key) return { value: written.value, isStale: false };
    const fail = (cause: unknown): never => {
      throw new StoreError("undecryptable", `${prefix}${(cause as Error).message}`, { cause, current });
    };
    try {
      const decrypted = transformer.decrypt(value, key);
      return decrypted instanceof Promise ? decrypted.catch(fail) : decrypted;
    } catch (cause) {
      return fail(cause);
    }
  }

  /** A previous value that cannot be decrypted is left out of an update. */
  async #decryptEvent(event: WatchEvent): Promise<WatchEvent> {
    if (event.type === "delete") return { ...event, previous: await this.#tryDecrypt(event.previous) };
    const previous = event.previous && (await this.#tryDecrypt(event.previous));
    return {
      ...event,
      item: await this.#tryDecrypt(event.item),
      previous: previous?.failure === undefined ? previous : undefined,
    };
  }

  async #tryDecrypt(item: KeyValue): Promise<KeyValue> {
    try {
      return await this.#decrypt(item);
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
      const current = await this.#tryDecrypt(error.current);
      throw new StoreError(error.code, error.message, { cause: error, current });
    }
  }
}

function failEncryption(cause: unknown): never {
  throw new StoreError("unencryptable", (cause as Error).message, { cause });
}

function transformPrefix(key: string): string {
  return `unable to transform key ${JSON.stringify(key)}: `;
}
