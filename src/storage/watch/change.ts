/** What a cache holds and tells: objects with their wire bytes, made once, and changes shared by all watchers. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { encodeJson } from "../../schema/json.ts";
import { versioned } from "../object-store.ts";
import type { Revision } from "../store.ts";

export interface CachedObject<T> {
  readonly key: string;
  /** Frozen; metadata.resourceVersion is `revision`. */
  readonly object: T;
  /** JSON without kind and apiVersion: it starts with `{"metadata":`. Made when first asked for, then kept. */
  readonly bytes: Buffer;
  readonly revision: Revision;
}

export type CacheEvent<T> = ObjectEvent<T> | BookmarkEvent;

/** One object per change and type, whoever watches: it may key a WeakMap of encoded frames. */
export interface ObjectEvent<T> {
  /** As the watcher's `matches` sees it: an object that starts to match is ADDED, one that stops is DELETED. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** For DELETED: the last state that matched, with the revision of the change. */
  readonly item: CachedObject<T>;
  readonly revision: Revision;
}

interface BookmarkEvent {
  readonly type: "BOOKMARK";
  readonly revision: Revision;
  /** The bookmark of a watch without `from` that says: all that existed at its start has been sent. */
  readonly initialEventsEnd: boolean;
}

/** An object as cached; `bytes` are encoded when first read. */
export class Encoded<T extends ApiObject> implements CachedObject<T> {
  readonly key: string;
  readonly object: T;
  readonly revision: Revision;
  readonly #kind: Kind<T>;
  #bytes: Buffer | undefined;
  #added: ObjectEvent<T> | undefined;

  constructor(kind: Kind<T>, key: string, object: T, revision: Revision) {
    this.#kind = kind;
    this.key = key;
    this.object = object;
    this.revision = revision;
  }

  get bytes(): Buffer {
    this.#bytes ??= encodeJson(this.#kind.schema, this.object, { omitTypeMeta: true });
    return this.#bytes;
  }

  /** What a watcher is told that sees the object for the first time. */
  get added(): ObjectEvent<T> {
    this.#added ??= { type: "ADDED", item: this, revision: this.revision };
    return this.#added;
  }

  /** The same state at the revision in which it went away. */
  at(revision: Revision): Encoded<T> {
    return new Encoded(this.#kind, this.key, versioned(this.object, revision), revision);
  }
}

/** A step in the life of one object: from `previous` to `current`, either of which may be nothing. */
export class Change<T extends ApiObject> {
  readonly key: string;
  readonly revision: Revision;
  readonly current: Encoded<T> | undefined;
  readonly previous: Encoded<T> | undefined;
  /** Bytes in the store of the change, for the history's budget. */
  readonly size: number;
  #modified: ObjectEvent<T> | undefined;
  #deleted: ObjectEvent<T> | undefined;

  constructor(revision: Revision, previous: Encoded<T> | undefined, current: Encoded<T> | undefined, size: number) {
    const either = current ?? previous;
    if (either === undefined) throw new Error("Cannot change nothing into nothing");
    this.key = either.key;
    this.revision = revision;
    this.previous = previous;
    this.current = current;
    this.size = size;
  }

  /** What a watcher with this selector sees; undefined when it sees nothing. */
  seenBy(matches: ((object: T) => boolean) | undefined): ObjectEvent<T> | undefined {
    const { previous, current } = this;
    const before = previous !== undefined && (matches === undefined || matches(previous.object));
    const after = current !== undefined && (matches === undefined || matches(current.object));
    if (after && !before) return current.added;
    if (after) return this.#modifiedEvent(current);
    return before ? this.#deletedEvent(previous) : undefined;
  }

  #modifiedEvent(item: Encoded<T>): ObjectEvent<T> {
    this.#modified ??= { type: "MODIFIED", item, revision: this.revision };
    return this.#modified;
  }

  #deletedEvent(item: Encoded<T>): ObjectEvent<T> {
    this.#deleted ??= { type: "DELETED", item: item.at(this.revision), revision: this.revision };
    return this.#deleted;
  }
}
