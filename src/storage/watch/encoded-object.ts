import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { encodeJson } from "../../schema/json/encode.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import { withResourceVersion } from "../object-store.ts";
import { type KeyValue, type Revision, StoreError } from "../store.ts";
import { type CacheMemory, type EvictableObject, REREAD_BYTES_MIN } from "./cache-memory.ts";
import type { CachedObject, ObjectEvent } from "./watch-event.ts";

type EventType = ObjectEvent<ApiObject>["type"];

/** Where the objects of a cache come from. */
export interface ObjectSource<T extends ApiObject> {
  readonly memory: CacheMemory;
  /** Does not throw for a value that it decoded before. */
  readonly decode: (item: KeyValue) => T;
  /** Reads a value again; undefined when it has been compacted. Absent where values differ from those of the store. */
  readonly reread?: ((key: string, modified: Revision) => Uint8Array | undefined) | undefined;
}

interface Stored<T extends ApiObject> {
  readonly source: ObjectSource<T>;
  readonly item: KeyValue;
}

/**
 * An object with its encodings; `bytes` is encoded at the first read. With `stored`, the decoded object, the encodings
 * and a large value are evicted when the memory of caches is used up, and created or read again at the next read. A
 * superseded value can be read until the store compacts it; after that, reads throw a `StoreError` of code `compacted`.
 */
export class EncodedObject<T extends ApiObject> implements CachedObject<T>, EvictableObject {
  readonly key: string;
  readonly revision: Revision;
  readonly labels: ObjectMeta["labels"];
  /** Bytes of the stored value. */
  readonly size: number;
  readonly #kind: Kind<T>;
  readonly #source: ObjectSource<T> | undefined;
  readonly #modified: Revision;
  readonly #created: Revision;
  readonly #isPinned: boolean;
  #value: Uint8Array | undefined;
  #object: T | undefined;
  #bytes: Buffer | undefined;
  /** The watch events of the object by type. Frames of watchers are kept with their event. */
  #events: Partial<Record<EventType, ObjectEvent<T>>> | undefined;
  #retired = false;
  #current = true;

  constructor(kind: Kind<T>, key: string, object: T, revision: Revision, stored?: Stored<T>) {
    this.#kind = kind;
    this.key = key;
    this.#object = object;
    this.labels = object.metadata?.labels;
    this.revision = revision;
    this.#source = stored?.source;
    this.#value = stored?.item.value;
    this.size = stored?.item.value.length ?? 0;
    this.#modified = stored?.item.modified ?? revision;
    this.#created = stored?.item.created ?? revision;
    this.#isPinned = stored?.item.isPinned === true;
  }

  get stored(): Uint8Array | undefined {
    return this.#value;
  }

  /** Whether the cache holds this state of the object. */
  get isCurrent(): boolean {
    return this.#current;
  }

  /** Bytes that cannot be evicted. */
  get keptBytes(): number {
    return this.#isRereadable ? 0 : this.size;
  }

  /**
   * As measured, a decoded object has 4 KB for pods of 0.8 KB, 2 KB for config maps of 1.3 KB; it keeps its protobuf,
   * if any. There is a frame of the size of the JSON for each event. Before the JSON exists, an estimate: JSON mostly
   * has twice the bytes of the stored value.
   */
  get evictableBytes(): number {
    const { size } = this;
    let bytes = 200;
    if (this.#object !== undefined) bytes += 1024 + 3 * size;
    if (this.#value !== undefined && this.#isRereadable) bytes += size;
    const frames = this.#events === undefined ? 0 : Object.keys(this.#events).length;
    if (this.#bytes !== undefined) bytes += this.#bytes.length * (1 + frames);
    else if (frames > 0) bytes += 2 * size * (1 + frames);
    return bytes;
  }

  get object(): T {
    const object = this.#object ?? this.#decode();
    this.#object = object;
    this.#memory?.objects.touch(this);
    return object;
  }

  get bytes(): Buffer {
    this.#bytes ??= this.#encode();
    this.#memory?.objects.touch(this);
    return this.#bytes;
  }

  encodeForList(listBytes: number): Buffer {
    if (this.#source?.memory.isTooLarge(listBytes) === true) return this.#bytes ?? this.#encode();
    return this.bytes;
  }

  /** The event of a watcher that receives the object for the first time. */
  get added(): ObjectEvent<T> {
    return this.#event("ADDED");
  }

  /** The event of a watcher that received an earlier state of the object. */
  get modified(): ObjectEvent<T> {
    return this.#event("MODIFIED");
  }

  /** The event of a watcher that received the object before; for the result of `withRevision`. */
  get deleted(): ObjectEvent<T> {
    return this.#event("DELETED");
  }

  /**
   * Whether the object can be read: not if its value has been evicted, superseded and compacted, or its encryption key
   * has been removed since.
   */
  get isReadable(): boolean {
    if (this.#object !== undefined || this.#value !== undefined) return true;
    try {
      return this.#source?.reread?.(this.key, this.#modified) !== undefined;
    } catch (error) {
      if (error instanceof StoreError && error.code === "undecryptable") return false;
      throw error;
    }
  }

  /** The same state with the revision of its deletion. */
  withRevision(revision: Revision): EncodedObject<T> {
    const { object } = this;
    const source = this.#source;
    const copied = withResourceVersion(object, revision);
    if (source === undefined) return new EncodedObject(this.#kind, this.key, copied, revision);
    const copy = new EncodedObject(this.#kind, this.key, copied, revision, {
      source: { ...source, decode: (stored) => withResourceVersion(source.decode(stored), revision) },
      item: this.#item(),
    });
    copy.#current = false;
    if (this.#retired) copy.retire();
    copy.retain();
    return copy;
  }

  /** Keeps the decoded object in memory: an object that has just changed is likely to be read. */
  retain(): void {
    this.#memory?.objects.touch(this);
  }

  /** Sets an evicted value that is in memory anyway: with it an event can be read that is older than a compaction. */
  restore(item: KeyValue | undefined): void {
    if (item?.failure !== undefined || item?.modified !== this.#modified || !this.#isRereadable) return;
    this.#value = item.value;
  }

  /** Called when neither the cache nor its history has the object: encodings live as long as the queues with it. */
  retire(): void {
    this.release();
    this.#retired = true;
  }

  /** Called when the key holds another object or none. */
  release(): void {
    const memory = this.#source?.memory;
    memory?.objects.delete(this);
    this.evict();
    if (!this.#current) return;
    this.#current = false;
    memory?.queues.supersede(this);
  }

  evict(): void {
    if (this.#source === undefined) return;
    this.#object = undefined;
    this.#bytes = undefined;
    this.#events = undefined;
    if (this.#isRereadable) this.#value = undefined;
  }

  get #isRereadable(): boolean {
    return !this.#isPinned && this.size >= REREAD_BYTES_MIN && this.#source?.reread !== undefined;
  }

  /** The memory that counts the object; none when only queues of watchers have it. */
  get #memory(): CacheMemory | undefined {
    return this.#retired ? undefined : this.#source?.memory;
  }

  /** An object that is decoded for its JSON only is not kept: a list of all objects would evict those in use. */
  #encode(): Buffer {
    return toUnpooledBuffer(encodeJson(this.#kind.schema, this.#object ?? this.#decode(), { omitTypeMeta: true }));
  }

  /** The object has a source: it is never evicted otherwise. */
  #decode(): T {
    return this.#source!.decode(this.#item());
  }

  #item(): KeyValue {
    const value = this.#value ?? this.#source?.reread?.(this.key, this.#modified);
    if (value === undefined) {
      throw new StoreError("compacted", `Cannot read "${this.key}" of revision ${this.#modified}: it is compacted`);
    }
    const item = { key: this.key, value, modified: this.#modified, created: this.#created };
    return this.#isPinned ? { ...item, isPinned: true } : item;
  }

  #event(type: EventType): ObjectEvent<T> {
    const event = this.#events?.[type] ?? { type, item: this, revision: this.revision, size: this.size };
    if (this.#events === undefined) this.#events = { [type]: event };
    else this.#events[type] = event;
    this.#memory?.objects.touch(this);
    return event;
  }
}
