import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { encodeJson } from "../../schema/json/encode.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import { withResourceVersion } from "../object-store.ts";
import type { KeyValue, Revision } from "../store.ts";
import type { CacheMemory, EvictableObject } from "./cache-memory.ts";
import type { CachedObject, ObjectEvent } from "./watch-event.ts";

type EventType = ObjectEvent<ApiObject>["type"];

export interface StoredValue<T extends ApiObject> {
  readonly memory: CacheMemory;
  readonly item: KeyValue;
  /** Decodes `item`; does not throw for a value that it decoded before. */
  readonly decode: (item: KeyValue) => T;
}

/**
 * An object with its encodings; `bytes` is encoded at the first read. With `stored`, the decoded object and the
 * encodings are evicted when the memory limits are reached, and are created again at the next read.
 */
export class EncodedObject<T extends ApiObject> implements CachedObject<T>, EvictableObject {
  readonly key: string;
  readonly revision: Revision;
  readonly labels: ObjectMeta["labels"];
  readonly #kind: Kind<T>;
  readonly #stored: StoredValue<T> | undefined;
  #object: T | undefined;
  #bytes: Buffer | undefined;
  /** The watch events of the object by type. Frames of watchers are kept with their event. */
  #events: Partial<Record<EventType, ObjectEvent<T>>> | undefined;
  #retired = false;
  #current = true;

  constructor(kind: Kind<T>, key: string, object: T, revision: Revision, stored?: StoredValue<T>) {
    this.#kind = kind;
    this.key = key;
    this.#object = object;
    this.labels = object.metadata?.labels;
    this.revision = revision;
    this.#stored = stored;
  }

  get stored(): Uint8Array | undefined {
    return this.#stored?.item.value;
  }

  get size(): number {
    return this.#stored?.item.value.length ?? 0;
  }

  /** Whether the cache holds this state of the object. */
  get isCurrent(): boolean {
    return this.#current;
  }

  /**
   * The JSON, and a frame of the same size for each event. Before the JSON exists, an estimate: JSON mostly has twice
   * the bytes of the stored value.
   */
  get encodedSize(): number {
    const frames = this.#events === undefined ? 0 : Object.keys(this.#events).length;
    return (this.#bytes?.length ?? 2 * this.size) * (1 + frames);
  }

  get object(): T {
    const stored = this.#stored;
    if (stored === undefined) return this.#object!;
    const object = this.#object ?? stored.decode(stored.item);
    this.#object = object;
    this.#memory?.objects.touch(this);
    return object;
  }

  get bytes(): Buffer {
    if (this.#bytes === undefined) {
      // An object that is decoded for its JSON only is not kept: a list of all objects would evict those in use.
      const object = this.#object ?? this.#stored?.decode(this.#stored.item) ?? this.object;
      this.#bytes = toUnpooledBuffer(encodeJson(this.#kind.schema, object, { omitTypeMeta: true }));
    }
    this.#memory?.encodings.touch(this);
    return this.#bytes;
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

  /** The same state with the revision of its deletion. */
  withRevision(revision: Revision): EncodedObject<T> {
    const { item, decode, memory } = this.#stored ?? {};
    const object = withResourceVersion(this.object, revision);
    if (item === undefined || decode === undefined || memory === undefined) {
      return new EncodedObject(this.#kind, this.key, object, revision);
    }
    const copy = new EncodedObject(this.#kind, this.key, object, revision, {
      memory,
      item,
      decode: (stored) => withResourceVersion(decode(stored), revision),
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

  /** Called when neither the cache nor its history has the object: encodings live as long as the queues with it. */
  retire(): void {
    this.release();
    this.#retired = true;
  }

  /** Called when the key holds another object or none. */
  release(): void {
    this.#stored?.memory.objects.delete(this);
    this.#stored?.memory.encodings.delete(this);
    if (!this.#current) return;
    this.#current = false;
    this.#stored?.memory.queues.supersede(this);
  }

  dropObject(): void {
    this.#object = undefined;
  }

  dropEncodings(): void {
    this.#bytes = undefined;
    this.#events = undefined;
  }

  /** The limits that count the object; none when only queues of watchers have it. */
  get #memory(): CacheMemory | undefined {
    return this.#retired ? undefined : this.#stored?.memory;
  }

  #event(type: EventType): ObjectEvent<T> {
    const event = this.#events?.[type] ?? { type, item: this, revision: this.revision, size: this.size };
    if (this.#events === undefined) this.#events = { [type]: event };
    else this.#events[type] = event;
    this.#memory?.encodings.touch(this);
    return event;
  }
}
