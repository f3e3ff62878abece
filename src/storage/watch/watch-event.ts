/** What a watch reports, and the cached objects in it. */
import type { ObjectMeta } from "../../api/meta/object-meta.ts";
import type { Revision } from "../store.ts";

/** What selectors read. Most read the labels only, for which the object need not be decoded. */
export interface Selectable<T> {
  readonly labels: ObjectMeta["labels"];
  /** Frozen; metadata.resourceVersion is that of the last change. */
  readonly object: T;
}

export type Matches<T> = (item: Selectable<T>) => boolean;

export interface CachedObject<T> extends Selectable<T> {
  readonly key: string;
  /** JSON without kind and apiVersion; starts with `{"metadata":`. Encoded at the first read, then kept. */
  readonly bytes: Buffer;
  readonly revision: Revision;
  /** The value in the store; undefined where it is not in memory. */
  readonly stored?: Uint8Array | undefined;
  /** Bytes of the stored value; 0 for an object that was not read through a cache. */
  readonly size: number;
  /** The same as `bytes`, for a list of objects of `listBytes`: not kept if the list would evict what is in use. */
  encodeForList(listBytes: number): Buffer;
}

export interface WatchedObject<T> extends CachedObject<T> {
  /** Whether it is the latest state of a cached object. */
  readonly isCurrent: boolean;
}

export type CacheEvent<T> = ObjectEvent<T> | BookmarkEvent;

/** All watchers share one object per change and type: it may be the key of a WeakMap of encoded frames. */
export interface ObjectEvent<T> {
  /** With a selector, an object that starts to match is ADDED, and one that stops to match is DELETED. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** For DELETED: the last state that matched, with the revision of the change. */
  readonly item: WatchedObject<T>;
  readonly revision: Revision;
  /** Bytes of the stored value. */
  readonly size: number;
}

interface BookmarkEvent {
  readonly type: "BOOKMARK";
  readonly revision: Revision;
  /** Set on the bookmark that follows the initial events of a watch without `from`. */
  readonly initialEventsEnd: boolean;
}
