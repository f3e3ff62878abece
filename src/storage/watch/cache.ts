import type { ApiObject, Kind } from "../../api/kind.ts";
import { expired } from "../../api/status.ts";
import { Backoff } from "../../std/backoff.ts";
import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";
import type { RandomSource } from "../../std/random.ts";
import { systemRandom } from "../../std/random.ts";
import type { ObjectStore } from "../object-store.ts";
import {
  type KeyValue,
  type Page,
  prefixRange,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
} from "../store.ts";
import { type CachedObject, type CacheEvent, Change, Encoded } from "./change.ts";
import { History, type HistoryBudget } from "./history.ts";
import { Indexes, type IndexFunctions } from "./indexes.ts";
import { SortedObjects } from "./sorted.ts";
import { Watcher, type WatchOptions } from "./watcher.ts";
import { Watchers } from "./watchers.ts";

export type { CachedObject, CacheEvent } from "./change.ts";
export type { WatchOptions } from "./watcher.ts";

export interface CacheList<T> {
  readonly items: readonly CachedObject<T>[];
  readonly revision: Revision;
}

export interface WatchCacheOptions<T extends ApiObject> {
  readonly store: Store;
  readonly objects: ObjectStore<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly indexes?: IndexFunctions<T> | undefined;
  readonly history?: HistoryBudget | undefined;
  /** For the jitter of retries. */
  readonly random?: RandomSource | undefined;
}

/** About a minute of a busy kind; memory for the decoded objects comes on top of the bytes. */
const HISTORY: HistoryBudget = { items: 4096, bytes: 8 * 2 ** 20 };

/**
 * All objects of one kind, as the store showed them last, and whoever wants to hear of changes. Reads never reach the
 * store: a change is decoded once when it comes in, encoded once when first read, and shared by all.
 *
 *     Store.watch → decode → objects, indexes, history → watchers (a queue each) → response streams
 *
 * When the store's watch breaks, the cache lists again and tells its watchers the differences; the history starts anew.
 */
export class WatchCache<T extends ApiObject> implements AsyncDisposable {
  readonly kind: Kind<T>;
  readonly #options: WatchCacheOptions<T>;
  readonly #objects = new SortedObjects<Encoded<T>>();
  readonly #indexes: Indexes<T>;
  readonly #history: History<Change<T>>;
  readonly #watchers: Watchers<T>;
  readonly #closing = new AbortController();
  readonly #ready = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  /** Who waits for the cache to reach a revision. As many as there are requests in flight. */
  readonly #waiting = new Set<{ readonly revision: Revision; readonly resolve: () => void }>();
  /** For metrics; nothing depends on them. */
  readonly counts = { received: 0, initializations: 0 };
  #revision = 0 as Revision;
  #listed = false;
  #changes = 0;

  constructor(options: WatchCacheOptions<T>) {
    this.#options = options;
    this.kind = options.objects.kind;
    this.#indexes = new Indexes(options.indexes ?? {});
    this.#history = new History(options.history ?? HISTORY, this.#revision);
    this.#watchers = new Watchers(options.clock, this.#indexes, () => this.#revision);
    this.#ready.promise.catch(() => {});
    this.#running = this.#run();
  }

  /** Resolves when the first list is in; rejects when the cache is closed before. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The revision the cache shows. */
  revision(): Revision {
    return this.#revision;
  }

  /** How many changes it has taken: for those who derive something from all its objects. */
  get changes(): number {
    return this.#changes;
  }

  /** How many objects it shows; 0 before its first list. */
  get size(): number {
    return this.#objects.size;
  }

  /** Whether it shows all up to `revision`. */
  shows(revision: Revision): boolean {
    return this.#listed && this.#revision >= revision;
  }

  get(key: string): CachedObject<T> | undefined {
    return this.#objects.get(key);
  }

  /** In key order. */
  list(prefix: string): CacheList<T> {
    return { items: this.#objects.prefixed(prefix), revision: this.#revision };
  }

  /** The objects whose index has this value, in key order. */
  listIndexed(index: string, value: string): CacheList<T> {
    return { items: this.#indexes.find(index, value), revision: this.#revision };
  }

  /** Resolves when the cache shows all up to `revision`; rejects with the signal's reason if that aborts first. */
  waitFor(revision: Revision, signal?: AbortSignal): Promise<void> {
    if (this.shows(revision)) return Promise.resolve();
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    if (stop.aborted) return Promise.reject(stop.reason);
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiting.delete(waiter);
        reject(stop.reason);
      };
      const waiter = {
        revision,
        resolve: () => {
          stop.removeEventListener("abort", abort);
          resolve();
        },
      };
      this.#waiting.add(waiter);
      stop.addEventListener("abort", abort, { once: true });
    });
  }

  /**
   * Starts at the call. The iteration fails with a `StatusError` 410 when `from` is older than the history or the
   * reader falls too far behind, with a `StoreError` when the cache is closed. It ends when the signal aborts.
   */
  watch(options: WatchOptions<T>): AsyncIterableIterator<CacheEvent<T>> {
    const matches = this.#selector(options);
    const { from } = options;
    const closed = this.#closing.signal.aborted;
    const initial = from === undefined && !closed ? this.#present(options, matches) : [];
    const ahead = from !== undefined && from > this.#revision ? from : (0 as Revision);
    const watcher = new Watcher<T>(options, matches, ahead, initial, (ended) => this.#watchers.remove(ended));
    if (closed) watcher.fail(this.#closing.signal.reason);
    else if (from !== undefined && from < this.#history.start) {
      watcher.fail(expired(`too old resource version: ${from} (${this.#history.start})`));
    } else if (!options.signal.aborted) {
      this.#watchers.add(watcher);
      if (from !== undefined) watcher.replay(this.#history.since(from));
    }
    return watcher;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const error = new StoreError("closed", `Cannot use the cache of ${this.kind.plural}: it is closed`);
    this.#closing.abort(error);
    this.#ready.reject(error);
    this.#watchers.failAll(error);
    await this.#running;
  }

  /** The watcher's own selector and its index, as one. */
  #selector({ matches, index }: WatchOptions<T>): ((object: T) => boolean) | undefined {
    if (index === undefined) return matches;
    const { name, value } = index;
    return (object) => this.#indexes.valueOf(name, object) === value && (matches?.(object) ?? true);
  }

  #present({ prefix, bookmarks, index }: WatchOptions<T>, matches?: (object: T) => boolean): CacheEvent<T>[] {
    const found = index === undefined ? this.#objects.prefixed(prefix) : this.#indexes.find(index.name, index.value);
    const events: CacheEvent<T>[] = [];
    for (const item of found) {
      if (!item.key.startsWith(prefix) || matches?.(item.object) === false) continue;
      events.push(item.added);
    }
    if (bookmarks === true) events.push({ type: "BOOKMARK", revision: this.#revision, initialEventsEnd: true });
    return events;
  }

  async #run(): Promise<void> {
    const { store, objects, clock, log, random = systemRandom } = this.#options;
    const range = prefixRange(objects.prefix());
    const { signal } = this.#closing;
    const backoff = new Backoff({ initialMs: 50, maxMs: 10_000, jitter: 0.5 }, random);
    while (!signal.aborted) {
      try {
        this.#replace(await store.list(range));
        backoff.reset();
        for await (const batch of store.watch(range, this.#revision, signal)) {
          this.counts.received += batch.events.length;
          for (const event of batch.events) this.#apply(event);
          this.#progress(batch.revision);
        }
      } catch (error) {
        if (signal.aborted) return;
        log.error("Listing again after the store's watch broke", error, { resource: this.kind.plural });
        await clock.sleep(backoff.next(), signal).catch(() => {});
      }
    }
  }

  /** Takes over a whole list: the first one in silence, later ones as differences to what was there. */
  #replace(page: Page): void {
    const changes = this.#differences(page);
    // Watchers of before cannot know what happened in between, so nobody may resume from there.
    this.#history.restart(page.revision);
    for (const change of changes) this.#take(change);
    this.#listed = true;
    this.counts.initializations++;
    this.#progress(page.revision);
    this.#ready.resolve();
  }

  /** Deletions come first, with the old revision, from which no client can resume; then changes in their order. */
  #differences(page: Page): Change<T>[] {
    const present = new Set(page.items.map((item) => item.key));
    const gone = this.#objects.all().filter((item) => !present.has(item.key));
    const changes = gone.map((item) => new Change<T>(this.#revision, item, undefined, 0));
    const items = page.items.filter((item) => this.#objects.get(item.key)?.revision !== item.modified);
    for (const item of items.sort((a, b) => a.modified - b.modified)) {
      const change = this.#put(item);
      if (change !== undefined) changes.push(change);
    }
    return changes;
  }

  #apply(event: WatchEvent): void {
    let change: Change<T> | undefined;
    if (event.type === "put") change = this.#put(event.item);
    else {
      const previous = this.#objects.get(event.key);
      change = previous && new Change<T>(event.revision, previous, undefined, event.previous.value.length);
    }
    if (change === undefined) return;
    this.#history.push(change);
    this.#take(change);
  }

  /** An object that cannot be decoded is left out, as if it were not there: one bad value must not hide all others. */
  #put(item: KeyValue): Change<T> | undefined {
    const previous = this.#objects.get(item.key);
    try {
      const current = new Encoded(this.kind, item.key, this.#options.objects.decode(item), item.modified);
      return new Change(item.modified, previous, current, item.value.length);
    } catch (error) {
      this.#options.log.error("Leaving out an object that cannot be decoded", error, { key: item.key });
      return previous && new Change(item.modified, previous, undefined, item.value.length);
    }
  }

  #take(change: Change<T>): void {
    if (change.current === undefined) this.#objects.delete(change.key);
    else this.#objects.set(change.current);
    this.#indexes.replace(change.previous, change.current);
    this.#changes++;
    this.#watchers.dispatch(change);
  }

  #progress(revision: Revision): void {
    this.#revision = revision;
    for (const waiter of this.#waiting) {
      if (waiter.revision > revision) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }
}
