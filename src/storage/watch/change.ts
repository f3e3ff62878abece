/** What a cache holds and tells: objects with their wire bytes, made once, and changes shared by all watchers. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import { encodeJson } from "../../schema/json/encode.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import { withResourceVersion } from "../object-store.ts";
import type { KeyValue, Revision } from "../store.ts";
import type { CacheMemory } from "./cache-memory.ts";

/** What selectors ask of an object: most of them its labels only, which are there when its value is not. */
export interface Selectable<T> {
  readonly labels: ObjectMeta["labels"];
  /** Frozen; metadata.resourceVersion is that of the last change. */
  readonly object: T;
}

export type Matches<T> = (item: Selectable<T>) => boolean;

export interface CachedObject<T> extends Selectable<T> {
  readonly key: string;
  /** JSON without kind and apiVersion: it starts with `{"metadata":`. Made when first asked for, then kept. */
  readonly bytes: Buffer;
  readonly revision: Revision;
  /** As stored; undefined where they are not kept. */
  readonly stored?: Uint8Array | undefined;
}

export type CacheEvent<T> = ObjectEvent<T> | BookmarkEvent;

/** One object per change and type, whoever watches: it may key a WeakMap of encoded frames. */
export interface ObjectEvent<T> {
  /** As the watcher's `matches` sees it: an object that starts to match is ADDED, one that stops is DELETED. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** For DELETED: the last state that matched, with the revision of the change. */
  readonly item: CachedObject<T>;
  readonly revision: Revision;
  /** Of the object as stored, in bytes. */
  readonly size: number;
}

interface BookmarkEvent {
  readonly type: "BOOKMARK";
  readonly revision: Revision;
  /** The bookmark of a watch without `from` that says: all that existed at its start has been sent. */
  readonly initialEventsEnd: boolean;
}

/** An entry whose value and encodings can be made again from its stored bytes. */
export interface Evictable {
  /** Bytes as stored. */
  readonly size: number;
  /** Of its encodings, as long as these are kept. */
  readonly encodedSize: number;
  dropObject(): void;
  dropEncodings(): void;
}

/** Of a decoded object, as measured with pods of 0.8 KB and config maps of 1.3 KB: 4 KB and 2 KB. */
export function objectBytes({ size }: Evictable): number {
  return 1024 + 3 * size;
}

export function encodingBytes({ encodedSize }: Evictable): number {
  return 200 + encodedSize;
}

export interface StoredValue<T extends ApiObject> {
  readonly memory: CacheMemory;
  readonly item: KeyValue;
  /** The value of `item`; it must not throw for what it was once given. */
  readonly decode: (item: KeyValue) => T;
}

/**
 * An object with its encodings; `bytes` are made when first read. With `stored` both the value and the encodings are
 * kept only as long as there is room for them, and are made again when somebody asks.
 */
export class EncodedObject<T extends ApiObject> implements CachedObject<T>, Evictable {
  readonly key: string;
  readonly revision: Revision;
  readonly labels: ObjectMeta["labels"];
  readonly #kind: Kind<T>;
  readonly #stored: StoredValue<T> | undefined;
  #object: T | undefined;
  #bytes: Buffer | undefined;
  #added: ObjectEvent<T> | undefined;
  #encodedSize: number | undefined;

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

  /** Where it is asked before there is JSON, twice the stored bytes, as JSON mostly has. */
  get encodedSize(): number {
    this.#encodedSize ??= this.#bytes?.length ?? 2 * this.size;
    return this.#encodedSize;
  }

  get object(): T {
    const stored = this.#stored;
    if (stored === undefined) return this.#object!;
    const object = this.#object ?? stored.decode(stored.item);
    this.#object = object;
    stored.memory.objects.touch(this);
    return object;
  }

  get bytes(): Buffer {
    if (this.#bytes === undefined) {
      // Decoded for this only, it is not kept: a list of all there is would push out what is in use.
      const object = this.#object ?? this.#stored?.decode(this.#stored.item) ?? this.object;
      this.#bytes = toUnpooledBuffer(encodeJson(this.#kind.schema, object, { omitTypeMeta: true }));
    }
    this.#stored?.memory.encodings.touch(this);
    return this.#bytes;
  }

  /** What a watcher is told that sees the object for the first time. */
  get added(): ObjectEvent<T> {
    this.#added ??= { type: "ADDED", item: this, revision: this.revision, size: this.size };
    this.#stored?.memory.encodings.touch(this);
    return this.#added;
  }

  /** The same state at the revision in which it went away. */
  withRevision(revision: Revision): EncodedObject<T> {
    const { item, decode, memory } = this.#stored ?? {};
    const object = withResourceVersion(this.object, revision);
    if (item === undefined || decode === undefined || memory === undefined) {
      return new EncodedObject(this.#kind, this.key, object, revision);
    }
    return new EncodedObject(this.#kind, this.key, object, revision, {
      memory,
      item,
      decode: (stored) => withResourceVersion(decode(stored), revision),
    });
  }

  /** Makes room for the object, which has just changed and will likely be asked for. */
  retain(): void {
    this.#stored?.memory.objects.touch(this);
  }

  /** The object is no longer what its key holds. */
  release(): void {
    this.#stored?.memory.objects.delete(this);
    this.#stored?.memory.encodings.delete(this);
  }

  dropObject(): void {
    this.#object = undefined;
  }

  dropEncodings(): void {
    this.#bytes = undefined;
    this.#added = undefined;
    this.#encodedSize = undefined;
  }
}

/** A step in the life of one object: from `previous` to `current`, either of which may be nothing. */
export class Change<T extends ApiObject> {
  readonly key: string;
  readonly revision: Revision;
  readonly current: EncodedObject<T> | undefined;
  readonly previous: EncodedObject<T> | undefined;
  /** Bytes in the store of the change, for the history's budget. */
  readonly size: number;
  #modified: ObjectEvent<T> | undefined;
  #deleted: ObjectEvent<T> | undefined;

  constructor(revision: Revision, previous: EncodedObject<T> | undefined, current: EncodedObject<T> | undefined, size: number) {
    const either = current ?? previous;
    if (either === undefined) throw new Error("Cannot change nothing into nothing");
    this.key = either.key;
    this.revision = revision;
    this.previous = previous;
    this.current = current;
    this.size = size;
  }

  /** What a watcher with this selector sees; undefined when it sees nothing. */
  eventFor(matches: Matches<T> | undefined): ObjectEvent<T> | undefined {
    const { previous, current } = this;
    const before = previous !== undefined && (matches === undefined || matches(previous));
    const after = current !== undefined && (matches === undefined || matches(current));
    if (after && !before) return current.added;
    if (after) return this.#modifiedEvent(current);
    return before ? this.#deletedEvent(previous) : undefined;
  }

  #modifiedEvent(item: EncodedObject<T>): ObjectEvent<T> {
    this.#modified ??= { type: "MODIFIED", item, revision: this.revision, size: item.size };
    return this.#modified;
  }

  #deletedEvent(item: EncodedObject<T>): ObjectEvent<T> {
    this.#deleted ??= { type: "DELETED", item: item.withRevision(this.revision), revision: this.revision, size: item.size };
    return this.#deleted;
  }
}
