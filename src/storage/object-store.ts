import type { ApiObject, Kind } from "../api/kind.ts";
import { alreadyExists, conflict, type ErrorSubject, notFound, StatusError } from "../api/status.ts";
import type { Magic } from "../schema/protobuf/envelope.ts";
import { deepFreeze } from "../schema/value/freeze.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import { TimeSlice } from "../std/async/time-slice.ts";
import { toUnpooledBuffer } from "../std/memory/unpooled-buffer.ts";
import { type Clock, systemClock } from "../std/time/clock.ts";
import { type Attributes, addEvent, inLayer, inSpan } from "../tracing/span.ts";
import { type Codec, codecOf, type StorageMediaType } from "./codec.ts";
import { ConvertedValues } from "./converted-values.ts";
import { isEncryptedValue, READ_ENCRYPTED } from "./encryption/transformer.ts";
import { KeyQueues } from "./key-queues.ts";
import { KeySpace } from "./keys.ts";
import { type KeyValue, prefixRange, type Revision, type Store, StoreError } from "./store.ts";

export interface ObjectStoreOptions<T extends ApiObject> {
  readonly store: Store;
  readonly kind: Kind<T>;
  /** `/registry`: the prefix of all keys (`--kvstore-prefix`). */
  readonly prefix: string;
  /** The format of new values; all formats are read. `application/vnd.svc.protobuf` when absent. */
  readonly mediaType?: StorageMediaType | undefined;
  /** Whose names new values have; those of both are read. `svc` when absent. */
  readonly names?: Magic | undefined;
  /** For the turns of writers of one object; the host's clock when absent. */
  readonly clock?: Clock | undefined;
  /** Whether errors of objects that cannot be read have Kubernetes' words of the gate for their deletion. */
  readonly namesUnreadable?: boolean | undefined;
}

export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface ObjectWriteOptions {
  readonly ttlSeconds?: number | undefined;
  /** The subject of errors, with the client's group alias; the kind's group and the name in the key when absent. */
  readonly subject?: ErrorSubject | undefined;
}

export interface ObjectUpdateOptions<T> extends Omit<ObjectWriteOptions, "ttlSeconds"> {
  /** The time to live of the object. Each write starts it again; a write without one removes it. */
  readonly ttlSeconds?: ((object: T) => number | undefined) | undefined;
  readonly preconditions?: Preconditions | undefined;
  /**
   * The cached object, used for the first attempt, which saves a read; a stale one is replaced by the stored object.
   */
  readonly cached?:
    | { readonly object: T; readonly revision: Revision; readonly stored?: Uint8Array | undefined }
    | undefined;
}

/** What an update decides: to store `store`, or to delete the object, whose last state is `delete`. */
export type UpdateOutcome<T> = { readonly store: T } | { readonly delete: T };

export interface ObjectDeleteOptions<T> extends ObjectUpdateOptions<T> {
  /** May throw to prevent the deletion; may be called again. */
  readonly check?: ((current: T) => void | Promise<void>) | undefined;
}

export interface ObjectListOptions {
  readonly limit?: number | undefined;
  /** Only keys after this one. */
  readonly after?: string | undefined;
  readonly revision?: Revision | undefined;
}

export interface ObjectPage<T> {
  readonly items: readonly T[];
  readonly revision: Revision;
  readonly remaining: number;
}

interface State<T> {
  readonly object: T;
  readonly revision: Revision;
  /** The stored bytes; undefined when the state comes from a cache and may be stale. */
  readonly bytes: Uint8Array | undefined;
  /** The value is to be rewritten although it is the same. */
  readonly isStale?: boolean | undefined;
  /** The bytes in the version of the kind, also of a cached state. */
  readonly seen: Uint8Array | undefined;
}

/** Of one encoded object, as etcd's limit of a request. */
const STORED_BYTES_MAX = 1.5 * 2 ** 20;
/** The cache decodes a larger object in a turn of the event loop of its own, as soon as it is written. */
const LARGE_BYTES = 128 * 1024;

/**
 * Objects of one kind in a `Store`. Returned objects are frozen, with metadata.resourceVersion and without kind and
 * apiVersion. Errors of the client are `StatusError`s, those of the store `StoreError`s.
 */
export class ObjectStore<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly #store: Store;
  readonly #keys: KeySpace;
  readonly #codec: Codec<T>;
  readonly #queues: KeyQueues;
  /** Set for custom resources with a conversion webhook. */
  readonly #converted: ConvertedValues<T> | undefined;
  readonly #namesUnreadable: boolean;

  constructor(options: ObjectStoreOptions<T>) {
    const { store, kind, prefix, clock = systemClock } = options;
    const format = { mediaType: options.mediaType ?? "application/vnd.svc.protobuf", names: options.names ?? "svc" };
    this.kind = kind;
    this.#namesUnreadable = options.namesUnreadable ?? false;
    this.#queues = new KeyQueues(clock);
    this.#store = store;
    this.#keys = new KeySpace(prefix, kind);
    this.#codec = codecOf(kind, format);
    const { converter } = kind;
    this.#converted = converter && new ConvertedValues(kind, converter, this.#codec, format);
  }

  /** `/registry/pods/default/web`. Throws a 400 for a namespace or name that is not a path segment. */
  key(namespace: string | undefined, name: string): string {
    return this.#keys.key(namespace, name);
  }

  /** `/registry/pods/` or, with a namespace, `/registry/pods/default/`. */
  prefix(namespace?: string): string {
    return this.#keys.prefix(namespace);
  }

  /** Resolves with the object as stored. Throws 409 AlreadyExists. */
  async create(key: string, object: T, options: ObjectWriteOptions = {}): Promise<T> {
    return await inSpan("Create etcd3", this.#spanAttributes(key), () => this.#create(key, object, options));
  }

  async #create(key: string, object: T, options: ObjectWriteOptions): Promise<T> {
    try {
      addEvent("About to Encode");
      const slice = new TimeSlice();
      const bytes = this.#encode(object);
      addEvent("Encode succeeded", { len: bytes.length });
      if (slice.isOver) await slice.end();
      const { stored, shown } = this.#converted ? await this.#written(bytes) : this.#unconverted(bytes, object);
      const revision = await this.#store.create(key, toUnpooledBuffer(stored), options);
      addEvent("Txn call succeeded");
      if (stored.length > LARGE_BYTES) await slice.end();
      return withResourceVersion(shown, revision, stored.length);
    } catch (error) {
      if (isCode(error, "exists")) throw alreadyExists(this.#subject(key, options));
      throw error;
    }
  }

  #spanAttributes(key: string): () => Attributes {
    const { kind, group, plural: resource } = this.kind;
    return () => ({ key, type: `*${group.split(".", 1)[0] || "core"}.${kind}`, group, resource });
  }

  #encode(object: T): Uint8Array {
    const bytes = this.#codec.encode(object);
    if (bytes.length <= STORED_BYTES_MAX) return bytes;
    const why = `the object to store has ${bytes.length} bytes, limit is ${STORED_BYTES_MAX}`;
    throw new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${why}`);
  }

  async get(key: string): Promise<T | undefined> {
    return (await this.#read(key))?.object;
  }

  /** The object as a read returns it after its write: defaults or a webhook may change it. Writes nothing. */
  async roundTrip(object: T): Promise<T> {
    return this.#converted ? (await this.#written(this.#codec.encode(object))).shown : this.#asRead(object);
  }

  #unconverted(stored: Uint8Array, object: T): { readonly stored: Uint8Array; readonly shown: T } {
    return { stored, shown: this.#asRead(object) };
  }

  #asRead(object: T): T {
    return this.kind.strategy.afterDecode?.(object) ?? object;
  }

  /** Converts stored items for `decode`. Rejects with a `StatusError` when the webhook fails. */
  toKindVersion(items: readonly KeyValue[]): MaybePromise<readonly KeyValue[]> {
    return this.#converted?.toKindVersion(items) ?? items;
  }

  /**
   * Reads the object, stores what `mutate` returns, and starts over when another write came between; `mutate` may be
   * called again, and may throw. Writes nothing when the stored bytes would be the same. Throws 404, or 409 for
   * preconditions.
   */
  async guaranteedUpdate(
    key: string,
    mutate: (current: T) => MaybePromise<T>,
    options: ObjectUpdateOptions<T> = {},
  ): Promise<T> {
    const outcome = await this.updateOrDelete(key, async (current) => ({ store: await mutate(current) }), options);
    return "store" in outcome ? outcome.store : outcome.delete;
  }

  /**
   * As `guaranteedUpdate`, for updates that may delete the object. Resolves with the stored object or the last state.
   */
  async updateOrDelete(
    key: string,
    mutate: (current: T) => MaybePromise<UpdateOutcome<T>>,
    options: ObjectUpdateOptions<T> = {},
  ): Promise<UpdateOutcome<T>> {
    return await inSpan("GuaranteedUpdate etcd3", this.#spanAttributes(key), () =>
      this.#updateOrDelete(key, mutate, options),
    );
  }

  async #updateOrDelete(
    key: string,
    mutate: (current: T) => MaybePromise<UpdateOutcome<T>>,
    options: ObjectUpdateOptions<T>,
  ): Promise<UpdateOutcome<T>> {
    return await this.#retry(key, options, async (state) => {
      addEvent("initial value restored");
      const outcome = await mutate(state.object);
      if ("delete" in outcome) {
        if (state.bytes === undefined) throw staleCache(key);
        await this.#store.delete(key, state.revision);
        return outcome;
      }
      const next = outcome.store;
      const slice = new TimeSlice();
      const bytes = this.#encode(next);
      if (slice.isOver) await slice.end();
      const isSame = sameBytes(bytes, state.seen ?? this.#codec.encode(state.object));
      if (slice.isOver) await slice.end();
      if (isSame) {
        // Only the store can confirm that nothing changes.
        if (state.bytes === undefined) throw staleCache(key);
        if (state.isStale !== true)
          return { store: withResourceVersion(this.#asRead(next), state.revision, bytes.length) };
      }
      const ttlSeconds = options.ttlSeconds?.(next);
      const { stored, shown } = this.#converted ? await this.#written(bytes) : this.#unconverted(bytes, next);
      addEvent("Transaction prepared");
      const revision = await this.#store.update(key, toUnpooledBuffer(stored), state.revision, { ttlSeconds });
      addEvent("Transaction committed");
      if (stored.length > LARGE_BYTES) await slice.end();
      return { store: withResourceVersion(shown, revision, stored.length) };
    });
  }

  /** Resolves with the last state, with the resourceVersion of the deletion. Throws 404, or 409 for preconditions. */
  async delete(key: string, options: ObjectDeleteOptions<T> = {}): Promise<T> {
    return await this.#retry(key, options, async (state) => {
      await options.check?.(state.object);
      return withResourceVersion(state.object, await this.#store.delete(key, state.revision));
    });
  }

  /**
   * Deletes an object that cannot be read, whatever finalizers it has. Resolves with false, and deletes nothing, when
   * it can be read or does not exist.
   */
  async deleteUnreadable(key: string, check: () => Promise<void>): Promise<boolean> {
    for (;;) {
      const revision = await this.#unreadableRevision(key);
      if (revision === undefined) return false;
      await check();
      try {
        await this.#store.delete(key, revision);
        return true;
      } catch (error) {
        if (!isCode(error, "conflict")) throw error;
      }
    }
  }

  async #unreadableRevision(key: string): Promise<Revision | undefined> {
    try {
      await this.get(key);
      return undefined;
    } catch (error) {
      if (isUnreadable(error)) return error.current.modified;
      throw error;
    }
  }

  async list(prefix: string, { limit, after, revision }: ObjectListOptions = {}): Promise<ObjectPage<T>> {
    const range = prefixRange(prefix);
    const page = await this.#store.list(after === undefined ? range : { ...range, from: `${after}\0` }, {
      limit,
      revision,
    });
    const items = this.#converted ? await this.#converted.toKindVersion(page.items) : page.items;
    return { ...page, items: items.map((item) => this.decode(item)) };
  }

  /**
   * Throws a `StoreError` of code `corrupt` when the bytes are not an object of this kind, and of code `undecryptable`
   * for those of an encrypted value without a configuration that decrypts it.
   */
  decode(item: KeyValue): T {
    let object: T;
    try {
      object = inLayer("decode", () => this.#codec.decode(item.value));
    } catch (cause) {
      if (isEncryptedValue(item.value)) throw new StoreError("undecryptable", READ_ENCRYPTED, { cause, current: item });
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new StoreError("corrupt", `Cannot decode "${item.key}": ${why}`, { cause, current: item });
    }
    return withResourceVersion(object, item.modified, item.value.length);
  }

  /** The stored value that was written at `modified`; undefined when it has been compacted. */
  readVersion(key: string, modified: Revision): Uint8Array | undefined {
    return this.#store.readVersion(key, modified);
  }

  /**
   * Calls `write` with the cached or stored state. When another write comes between, or the state may have been stale,
   * repeats that with the stored state, one writer of the object after another.
   */
  async #retry<R>(key: string, options: ObjectUpdateOptions<T>, write: (state: State<T>) => Promise<R>): Promise<R> {
    const cached = options.cached && cachedState(options.cached);
    if (!this.#queues.has(key)) {
      const state = cached ?? (await this.#stored(key, options));
      try {
        this.checkPreconditions(key, state.object, options);
        return await write(state);
      } catch (error) {
        if (state.bytes !== undefined && !isCode(error, "conflict")) throw error;
      }
    }
    return await this.#queues.run(key, () => this.#repeat(key, options, cached, write));
  }

  /** Until no other write comes between: one outside the queue, or in another version of the kind. */
  async #repeat<R>(
    key: string,
    options: ObjectUpdateOptions<T>,
    cached: State<T> | undefined,
    write: (state: State<T>) => Promise<R>,
  ): Promise<R> {
    for (;;) {
      const state = await this.#stored(key, options, cached);
      try {
        this.checkPreconditions(key, state.object, options);
        return await write(state);
      } catch (error) {
        if (!isCode(error, "conflict")) throw error;
      }
    }
  }

  async #stored(key: string, options: ObjectUpdateOptions<T>, cached?: State<T>): Promise<State<T>> {
    const state = await this.#read(key, cached);
    if (state === undefined) throw notFound(this.#subject(key, options));
    if ((state.bytes?.length ?? 0) > LARGE_BYTES) await new TimeSlice().end();
    return state;
  }

  async #read(key: string, cached?: State<T>): Promise<State<T> | undefined> {
    try {
      const item = await this.#store.get(key);
      return item && (await this.#state(item, cached));
    } catch (error) {
      if (this.#namesUnreadable && isUnreadable(error)) throw describeUnreadable(key, error);
      throw error;
    }
  }

  /** Decodes the item, unless it is the cached one. */
  async #state(item: KeyValue, cached: State<T> | undefined): Promise<State<T>> {
    const { modified: revision, value: bytes, isStale } = item;
    if (cached?.revision === revision && cached.seen !== undefined) return { ...cached, bytes, isStale };
    if (bytes.length > LARGE_BYTES) await new TimeSlice().end();
    const [shown = item] = await this.toKindVersion([item]);
    return { object: this.decode(shown), revision, bytes, seen: shown.value, isStale };
  }

  async #written(bytes: Uint8Array): Promise<{ readonly stored: Uint8Array; readonly shown: T }> {
    const { stored, converted: shown } = await this.#converted!.toStorageVersion(bytes);
    return { stored, shown: this.#codec.decode(shown) };
  }

  checkPreconditions(key: string, object: T, options: ObjectUpdateOptions<T>): void {
    const { uid, resourceVersion } = options.preconditions ?? {};
    const actual = object.metadata;
    const fail = (what: string, expected: string, found: string | undefined): never => {
      const why = `${what} in precondition: ${expected}, ${what} in object meta: ${found ?? ""}`;
      throw conflict(this.#subject(key, options), preconditionFailed(key, why));
    };
    if (uid !== undefined && uid !== actual?.uid) fail("UID", uid, actual?.uid);
    if (resourceVersion !== undefined && resourceVersion !== actual?.resourceVersion) {
      fail("ResourceVersion", resourceVersion, actual?.resourceVersion);
    }
  }

  #subject(key: string, options: Pick<ObjectWriteOptions, "subject">): ErrorSubject {
    return options.subject ?? { group: this.kind.group, resource: this.kind.plural, name: this.#keys.nameOf(key) };
  }
}

interface UnreadableError extends StoreError {
  readonly current: KeyValue;
}

/** Whether a stored value cannot be decrypted, or is no object of its kind. */
export function isUnreadable(error: unknown): error is UnreadableError {
  if (!(error instanceof StoreError) || error.current === undefined) return false;
  return error.code === "undecryptable" || error.code === "corrupt";
}

/** The error in the words of Kubernetes' storage. */
export function describeUnreadable(key: string, { code, message, cause, current }: UnreadableError): StoreError {
  // Errors of a range name the key themselves.
  const own = message.replace(`unable to transform key ${JSON.stringify(key)}: `, "");
  const why = code === "corrupt" && cause instanceof Error ? cause.message : own;
  const what =
    code === "corrupt"
      ? `object not decodable revision=${current.modified}`
      : "data from the storage is not transformable revision=0";
  const text = `StorageError: corrupt object, Code: 7, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${what}: ${why}`;
  return new StoreError(code, text, { cause, current });
}

/** The members of a cached object are getters, which a spread does not copy. */
function cachedState<T>(cached: NonNullable<ObjectUpdateOptions<T>["cached"]>): State<T> {
  return { object: cached.object, revision: cached.revision, bytes: undefined, seen: cached.stored };
}

/** The message of Kubernetes' storage. */
export function preconditionFailed(key: string, why: string): string {
  const error = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0`;
  return `${error}, AdditionalErrorMsg: Precondition failed: ${why}`;
}

/**
 * The object with its resourceVersion; frozen, since caches and callers share it. Freezing the members of an object
 * that has `bytes` and is large would take as long as decoding it.
 */
export function withResourceVersion<T extends ApiObject>(object: T, revision: Revision, bytes = 0): T {
  const { kind: _kind, apiVersion: _apiVersion, ...members } = object;
  const shown = { ...members, metadata: { ...object.metadata, resourceVersion: String(revision) } } as T;
  return bytes > LARGE_BYTES ? Object.freeze(shown) : deepFreeze(shown);
}

function staleCache(key: string): StoreError {
  return new StoreError("conflict", `Cannot trust the cache for "${key}"`);
}

function isCode(error: unknown, code: StoreError["code"]): error is StoreError {
  return error instanceof StoreError && error.code === code;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
