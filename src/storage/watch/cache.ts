import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";
import type { ObjectStore } from "../object-store.ts";
import type { Revision, Store } from "../store.ts";

export interface CachedObject<T> {
  readonly key: string;
  /** Frozen; metadata.resourceVersion is `revision`. */
  readonly object: T;
  /** JSON without kind and apiVersion: it starts with `{"metadata":`. Made once per change. */
  readonly bytes: Buffer;
  readonly revision: Revision;
}

export type CacheEvent<T> =
  | {
      /** As the watcher's `matches` sees it: an object that starts to match is ADDED, one that stops is DELETED. */
      readonly type: "ADDED" | "MODIFIED" | "DELETED";
      /** For DELETED: the last state that matched, with the revision of the change. Shared by all watchers. */
      readonly item: CachedObject<T>;
      readonly revision: Revision;
    }
  | {
      readonly type: "BOOKMARK";
      readonly revision: Revision;
      /** The first bookmark of a watch without `from`: all that existed at its start has been sent. */
      readonly initialEventsEnd: boolean;
    };

export interface WatchOptions<T> {
  readonly prefix: string;
  /** Changes after this revision; absent: ADDED for all there is, then changes. Older than the history: 410 Expired. */
  readonly from?: Revision | undefined;
  readonly matches?: ((object: T) => boolean) | undefined;
  /** Send BOOKMARK events about once a minute (and after the initial events). */
  readonly bookmarks?: boolean | undefined;
  readonly signal: AbortSignal;
}

export interface CacheList<T> {
  readonly items: readonly CachedObject<T>[];
  readonly revision: Revision;
}

export interface WatchCacheOptions<T extends ApiObject> {
  readonly store: Store;
  readonly objects: ObjectStore<T>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Secondary indexes by name: the value an object is found under. */
  readonly indexes?: Readonly<Record<string, (object: T) => string | undefined>> | undefined;
}

export declare class WatchCache<T extends ApiObject> implements AsyncDisposable {
  readonly kind: Kind<T>;
  constructor(options: WatchCacheOptions<T>);
  /** Resolves when the first list is in. */
  ready(): Promise<void>;
  /** The revision the cache shows. */
  revision(): Revision;
  get(key: string): CachedObject<T> | undefined;
  /** In key order. */
  list(prefix: string): CacheList<T>;
  /** The objects whose index has this value, in key order. */
  listIndexed(index: string, value: string): CacheList<T>;
  /** Resolves when the cache shows everything up to `revision`. Rejects when `signal` aborts. */
  waitFor(revision: Revision, signal?: AbortSignal): Promise<void>;
  /** Throws a `StatusError` 410 when `from` is too old, or when the watcher has fallen too far behind. */
  watch(options: WatchOptions<T>): AsyncIterable<CacheEvent<T>>;
  [Symbol.asyncDispose](): Promise<void>;
}
