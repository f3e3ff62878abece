import type { ApiObject, Kind } from "../../api/kind.ts";
import { expired, type StatusError } from "../../api/status.ts";
import { SortedObjects } from "../../std/collections/sorted-objects.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { LogFields, Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ObjectStore } from "../object-store.ts";
import { type KeyValue, type Revision, StoreError, type WatchEvent } from "../store.ts";
import { CacheMemory, REREAD_BYTES_MIN } from "./cache-memory.ts";
import { Change } from "./change.ts";
import { EncodedObject, type ObjectSource } from "./encoded-object.ts";
import type { Feed } from "./feed.ts";
import { type Follower, follow, type ListReceiver } from "./follow.ts";
import { History, type HistoryBudget } from "./history.ts";
import { Indexes, type IndexFunctions } from "./indexes.ts";
import type { CachedObject, CacheEvent, Matches } from "./watch-event.ts";
import { Watcher, type WatchOptions } from "./watcher.ts";
import { Watchers } from "./watchers.ts";

export interface CacheList<T> {
  readonly items: readonly CachedObject<T>[];
  readonly revision: Revision;
}

/** Numbers of lists by index; for metrics. */
export interface ListCounts {
  lists: number;
  fetched: number;
  returned: number;
}

export interface WatchCacheOptions<T extends ApiObject> {
  readonly feed: Feed;
  /**
   * Whether the feed may fail for long while the store works, as with a conversion webhook. Then the cache becomes
   * stalled: reads do not wait for it, and its watches end so that clients retry.
   */
  readonly fallible?: boolean | undefined;
  readonly objects: ObjectStore<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly indexes?: IndexFunctions<T> | undefined;
  readonly history?: HistoryBudget | undefined;
  /** Shared with other caches; not shared when absent. */
  readonly memory?: CacheMemory | undefined;
  /** For the jitter of retries. */
  readonly random?: RandomSource | undefined;
}

/** Bytes of a change in addition to those of the value that it keeps in memory. */
const CHANGE_BYTES = 200;

const TRACE_LEVEL = 6;

/** Retry interval of a stalled cache; watches get 429 until it succeeds. */
const STALLED_RETRY_MS = 1000;

/** About a minute of changes of a busy kind; the age is that of the changes that a compacted store keeps. */
const HISTORY: HistoryBudget = { items: 4096, bytes: 8 * 2 ** 20, ageMs: 300_000 };

/**
 * All objects of one kind in memory, and the watches on them. Reads do not reach the store: a change is decoded once
 * when it arrives, encoded once at the first read, and shared by all watchers.
 *
 *     StoreFeed → decode → objects, indexes, history → watchers (a queue each) → response streams
 *
 * When the feed breaks, the cache lists again and sends its watchers the differences; the history starts empty.
 */
export class WatchCache<T extends ApiObject> implements AsyncDisposable {
  readonly kind: Kind<T>;
  readonly #options: WatchCacheOptions<T>;
  readonly #objects = new SortedObjects<EncodedObject<T>>();
  readonly #memory: CacheMemory;
  readonly #indexes: Indexes<T>;
  readonly #history: History<Change<T>>;
  readonly #watchers: Watchers<T>;
  readonly #closing = new AbortController();
  #ready = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  /** For metrics; nothing depends on them. */
  readonly counts = {
    received: 0,
    initializations: 0,
    /** Events with which watches began. */
    initialEvents: 0,
    /** Watches that ended because their client was too slow. */
    overflowedWatches: 0,
    /** Lists of the latest revision that waited for it successfully, and those that did not. */
    consistentLists: { succeeded: 0, failed: 0 },
    lists: new Map<string, ListCounts>(),
  };
  /** The revision of the latest list; after the feed broke, the last revision of the cache. */
  #base = 0 as Revision;
  /** Whether the feed delivers all changes after `#base`. */
  #following = false;
  #listed = false;
  /** Whether a fallible feed has failed, and no list succeeded since. */
  #stalled = false;
  /** Aborts when the values of a conversion webhook exceed the memory for them: the cache then keeps nothing. */
  readonly #overflow = new AbortController();
  #convertedBytes = 0;
  /** Set while the store cannot be read because it is damaged. */
  #damage: StoreError | undefined;
  #changes = 0;
  readonly #source: ObjectSource<T>;

  constructor(options: WatchCacheOptions<T>) {
    this.#options = options;
    this.kind = options.objects.kind;
    this.#memory = options.memory ?? new CacheMemory();
    const { objects } = options;
    this.#source = {
      memory: this.#memory,
      decode: (item) => objects.decode(item),
      // A converter's values are not those of the store.
      reread: objects.kind.converter === undefined ? (key, modified) => objects.readVersion(key, modified) : undefined,
    };
    this.#indexes = new Indexes(options.indexes ?? {});
    this.#history = new History(options.history ?? HISTORY, this.#base, this.#memory.history);
    this.#watchers = new Watchers(options.clock, this.#indexes, () => this.revision());
    this.#ready.promise.catch(() => {});
    this.#running = this.#run();
  }

  /** Resolves with the first list; rejects when the cache is closed before, or while the store is damaged. */
  ready(): Promise<void> {
    return this.#damage === undefined ? this.#ready.promise : Promise.reject(this.#damage);
  }

  /** The revision of the cache. */
  revision(): Revision {
    const { revision } = this.#options.feed;
    return this.#following && revision > this.#base ? revision : this.#base;
  }

  /** Watches start at this revision or a later one. */
  get historyStart(): Revision {
    return this.#history.start;
  }

  /** Number of changes so far, by which a caller detects that a value derived from all objects is outdated. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of objects; 0 before the first list. */
  get size(): number {
    return this.#listed ? this.#objects.size : 0;
  }

  /** Whether the cache has all changes up to `revision`. */
  hasReached(revision: Revision): boolean {
    return this.#listed && this.#damage === undefined && this.revision() >= revision;
  }

  /**
   * Whether the fallible feed has failed, or a value could not be decrypted: the cache may be outdated, and receives no
   * changes.
   */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Whether a list has succeeded. */
  get isListed(): boolean {
    return this.#listed;
  }

  /** Whether the objects are too large to be cached: the cache is stalled for good, clients use the store. */
  get isOverflowing(): boolean {
    return this.#overflow.signal.aborted;
  }

  get(key: string): CachedObject<T> | undefined {
    return this.#objects.get(key);
  }

  /** In key order. */
  list(prefix: string): CacheList<T> {
    return { items: this.#objects.prefixed(prefix), revision: this.revision() };
  }

  /** The objects at an earlier revision, in key order; undefined when the history does not go back that far. */
  listAt(prefix: string, revision: Revision): readonly CachedObject<T>[] | undefined {
    if (!this.hasReached(revision) || revision < this.#history.start) return undefined;
    const items = this.#objects.prefixed(prefix);
    const before = new Map<string, EncodedObject<T> | undefined>();
    for (const { key, previous } of this.#history.since(revision)) {
      if (key.startsWith(prefix) && !before.has(key)) before.set(key, previous);
    }
    if (before.size === 0) return items;
    const then = [...items.filter(({ key }) => !before.has(key)), ...before.values()];
    return then.filter((item) => item !== undefined).sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Counts a list, for metrics. */
  recordList(index: string, fetched: number, returned: number): void {
    let counts = this.counts.lists.get(index);
    if (counts === undefined) {
      counts = { lists: 0, fetched: 0, returned: 0 };
      this.counts.lists.set(index, counts);
    }
    counts.lists++;
    counts.fetched += fetched;
    counts.returned += returned;
  }

  /** The objects with this value in an index, in key order. */
  listIndexed(index: string, value: string): CacheList<T> {
    return { items: this.#indexes.find(index, value), revision: this.revision() };
  }

  /**
   * Resolves when the cache has all changes up to `revision`, or is stalled; rejects with the signal's reason if that
   * aborts first, and with a `StoreError` while the store is damaged.
   */
  waitFor(revision: Revision, signal?: AbortSignal): Promise<void> {
    if (this.#damage !== undefined) return Promise.reject(this.#damage);
    if (this.#stalled || this.hasReached(revision)) return Promise.resolve();
    return this.#wait(revision, signal);
  }

  /**
   * Starts at the call. The iteration fails with a 410 when `from` is older than the history or the reader is too slow,
   * and with a `StoreError` when the cache is closed. It ends when the signal aborts.
   */
  watch(options: WatchOptions<T>): AsyncIterableIterator<CacheEvent<T>> {
    const matches = this.#selector(options);
    const { from } = options;
    const failure = this.#closing.signal.aborted ? this.#closing.signal.reason : this.#damage;
    const initial = from === undefined && failure === undefined ? this.#present(options, matches) : [];
    const ahead = from !== undefined && from > this.revision() ? from : (0 as Revision);
    const watcher = new Watcher<T>(
      options,
      matches,
      ahead,
      initial,
      (ended) => {
        this.#watchers.remove(ended);
        if (ended.hasOverflowed) this.counts.overflowedWatches++;
      },
      this.#memory.queues,
    );
    if (failure !== undefined) watcher.fail(failure);
    else if (from !== undefined && from < this.#history.start) {
      watcher.fail(tooOld(from, this.#history.start));
    } else if (!options.signal.aborted) {
      this.#trace("Added a watcher", { prefix: options.prefix, from });
      this.#watchers.add(watcher);
      this.counts.initialEvents += initial.length;
      if (from !== undefined) this.#replay(watcher, from);
    }
    return watcher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const error = new StoreError("closed", `Cannot use the cache of ${this.kind.plural}: it is closed`);
    this.#closing.abort(error);
    this.#ready.reject(error);
    this.#watchers.failAll(error);
    await this.#running;
    this.#clear();
  }

  #clear(): void {
    this.#count(-this.#convertedBytes);
    for (const item of this.#objects.all()) {
      item.retire();
      this.#objects.delete(item.key);
    }
    this.#indexes.rebuild([]);
    this.#history.restart(this.revision());
  }

  /** The watcher's selector and index as one selector. */
  #selector({ matches, index }: WatchOptions<T>): Matches<T> | undefined {
    if (index === undefined) return matches;
    const { name, value } = index;
    return (item) => this.#indexes.valueOf(name, item.object) === value && (matches?.(item) ?? true);
  }

  #present({ prefix, initialEventsEnd, index }: WatchOptions<T>, matches?: Matches<T>): CacheEvent<T>[] {
    const found = index === undefined ? this.#objects.prefixed(prefix) : this.#indexes.find(index.name, index.value);
    const events: CacheEvent<T>[] = [];
    for (const item of found) {
      if (!item.key.startsWith(prefix) || matches?.(item) === false) continue;
      events.push(item.added);
    }
    if (initialEventsEnd === true) events.push({ type: "BOOKMARK", revision: this.revision(), initialEventsEnd });
    return events;
  }

  /** A change of a large object is read from the store, unless that has compacted it. */
  #replay(watcher: Watcher<T>, from: Revision): void {
    try {
      watcher.replay(this.#history.since(from));
    } catch (error) {
      watcher.fail(
        error instanceof StoreError && error.code === "compacted" ? tooOld(from, this.#history.start) : error,
      );
    }
  }

  async #wait(revision: Revision, signal: AbortSignal | undefined): Promise<void> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    do {
      stop.throwIfAborted();
      await this.#options.feed.progress.wait(stop);
      if (this.#damage !== undefined) throw this.#damage;
    } while (!this.#stalled && !this.hasReached(revision));
  }

  /** What the cache does, at -v=6. */
  #trace(message: string, fields: LogFields): void {
    this.#options.log.v(TRACE_LEVEL)?.info(message, { cache: this.kind.plural, ...fields });
  }

  #run(): Promise<void> {
    const { feed, objects, clock, log, random, fallible } = this.#options;
    const retryMaxMs = fallible === true ? STALLED_RETRY_MS : undefined;
    const follower: Follower = {
      startList: () => this.#startList(),
      onChange: (event) => this.#apply(event),
      onInterrupt: (error) => {
        this.#base = this.revision();
        this.#following = false;
        this.#trace("Lost the feed of changes; lists again", { revision: this.#base, reason: String(error) });
        const code = error instanceof StoreError ? error.code : undefined;
        if (error instanceof StoreError && code === "corrupt") this.#fail(error);
        else if (this.#options.fallible === true || code === "undecryptable") this.#stall();
      },
    };
    const prefix = objects.prefix();
    const signal = AbortSignal.any([this.#closing.signal, this.#overflow.signal]);
    return follow({ feed, prefix, follower, clock, log, random, retryMaxMs, signal });
  }

  /** Reads, watches and `ready` fail with the error until a list succeeds: none of them waits for ever. */
  #fail(error: StoreError): void {
    this.#damage = error;
    this.#watchers.failAll(error);
    if (!this.#listed) {
      this.#ready.reject(error);
      this.#ready = Promise.withResolvers();
      this.#ready.promise.catch(() => {});
    }
    this.#options.feed.progress.notify();
  }

  /** Waiting reads continue with the store; watches end, and their clients retry. */
  #stall(): void {
    this.#stalled = true;
    this.#watchers.endAll();
    this.#options.feed.progress.notify();
  }

  /** Counts large values that cannot be read from the store again. */
  #countConverted({ previous, current }: Change<T>): void {
    if (this.#source.reread !== undefined) return;
    const bytesOf = (item: EncodedObject<T> | undefined): number =>
      item === undefined || item.size < REREAD_BYTES_MIN ? 0 : item.size;
    this.#count(bytesOf(current) - bytesOf(previous));
    if (this.#memory.converted.isExceeded && this.#convertedBytes > 0) this.#giveUp();
  }

  #count(bytes: number): void {
    this.#convertedBytes += bytes;
    this.#memory.converted.bytes += bytes;
  }

  /** Clients retry, and read and watch the store. */
  #giveUp(): void {
    const mebibytes = Math.round(this.#memory.converted.max / 2 ** 20);
    this.#options.log.warn("Objects of a conversion webhook are too large to be cached", {
      resource: this.kind.plural,
      version: this.kind.version,
      mebibytes,
    });
    this.#base = this.revision();
    this.#following = false;
    this.#listed = false;
    this.#overflow.abort();
    this.#clear();
    this.#stall();
  }

  /** Replaces all objects by a list; after the first list, watchers receive the differences. */
  #startList(): ListReceiver {
    const present = new Set<string>();
    const changed: ListedItem<T>[] = [];
    return {
      add: (items) => {
        for (const item of items) {
          if (this.isOverflowing) return;
          present.add(item.key);
          if (this.#objects.get(item.key)?.revision === item.modified) continue;
          const { key, modified } = item;
          const current = this.#decode(item, true);
          // The first list has no watchers: key order is faster.
          if (!this.#listed) this.#applyListed({ key, modified, current });
          else {
            current?.evict();
            changed.push({ key, modified, current });
          }
        }
      },
      complete: (revision) => {
        if (this.isOverflowing) return;
        // The changes before the list are unknown: no client may resume from there.
        this.#history.restart(revision);
        this.#applyDifferences(present, changed);
        if (this.isOverflowing) return;
        this.#base = revision;
        this.#following = true;
        this.#listed = true;
        this.#stalled = false;
        this.#damage = undefined;
        this.counts.initializations++;
        this.#trace("Listed all objects", { objects: this.#objects.size, revision });
        this.#options.feed.progress.notify();
        this.#ready.resolve();
      },
    };
  }

  /** Deletions first, with the old revision, from which no client can resume; then changes in order of revision. */
  #applyDifferences(present: ReadonlySet<string>, changed: ListedItem<T>[]): void {
    const removed = this.#objects.all().filter(({ key }) => !present.has(key));
    const superseded = changed.map(({ key }) => this.#objects.get(key)).filter((object) => object !== undefined);
    if ([...removed, ...superseded].some((object) => !object.isReadable)) this.#startOver();
    for (const { key } of removed) this.#applyListed({ key, modified: this.#base, current: undefined });
    for (const item of changed.sort((a, b) => a.modified - b.modified)) {
      if (this.isOverflowing) return;
      this.#applyListed(item);
    }
  }

  /**
   * The store has compacted what watchers would receive last of an object, or the key of its encryption is gone: they
   * end, and no index may need it.
   */
  #startOver(): void {
    this.#watchers.failAll(tooOld(this.#base, this.#history.start));
    this.#indexes.rebuild(this.#objects.all().filter((object) => object.isReadable));
    for (const object of this.#objects.all().filter(({ isReadable }) => !isReadable)) {
      object.retire();
      this.#objects.delete(object.key);
    }
  }

  #applyListed({ key, modified, current }: ListedItem<T>): void {
    const previous = this.#objects.get(key);
    if (previous === undefined && current === undefined) return;
    const change = new Change<T>(modified, previous, current, 0);
    this.#applyChange(change);
    change.release();
  }

  #apply(event: WatchEvent): void {
    if (this.isOverflowing) return;
    this.counts.received++;
    const { key, modified } = event.type === "put" ? event.item : { key: event.key, modified: event.revision };
    let previous = this.#objects.get(key);
    previous?.restore(event.previous);
    if (previous?.isReadable === false) {
      // Watchers cannot receive the change: they list again.
      this.#startOver();
      this.#history.restart(modified);
      previous = undefined;
    }
    const current = event.type === "put" ? this.#decode(event.item) : undefined;
    if (previous === undefined && current === undefined) return;
    this.#trace("Received a change", { type: event.type, key, revision: modified });
    const change = new Change<T>(modified, previous, current, CHANGE_BYTES + (previous?.keptBytes ?? 0));
    this.#history.push(change, this.#options.clock.monotonic());
    this.#applyChange(change);
  }

  /**
   * Skips an object that cannot be decoded, as if it did not exist: one bad value must not hide all others. A list
   * fails for an encrypted value that the server has no configuration for: its objects must not seem deleted.
   */
  #decode(item: KeyValue, isListed = false): EncodedObject<T> | undefined {
    try {
      const source = this.#source;
      return new EncodedObject(this.kind, item.key, source.decode(item), item.modified, { source, item });
    } catch (error) {
      if (isListed && error instanceof StoreError && error.code === "undecryptable") throw error;
      this.#options.log.error("Failed to decode an object; skipping it", error, { key: item.key });
      return undefined;
    }
  }

  #applyChange(change: Change<T>): void {
    if (change.current === undefined) this.#objects.delete(change.key);
    else this.#objects.set(change.current);
    this.#indexes.replace(change.previous, change.current);
    this.#changes++;
    this.#watchers.dispatch(change);
    change.previous?.release();
    // The objects of the first list have not been read yet.
    if (this.#listed) change.current?.retain();
    else change.current?.evict();
    this.#countConverted(change);
  }
}

/** An item of a list, with `current` undefined for one that cannot be decoded or is gone. */
interface ListedItem<T extends ApiObject> {
  readonly key: string;
  readonly modified: Revision;
  readonly current: EncodedObject<T> | undefined;
}

/** The message of Kubernetes' watch cache. */
export function tooOld(from: Revision, start: Revision): StatusError {
  return expired(`too old resource version: ${from} (${start})`);
}
