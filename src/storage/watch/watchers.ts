import type { ApiObject } from "../../api/kind.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import type { Revision } from "../store.ts";
import type { Change } from "./change.ts";
import type { Indexes } from "./indexes.ts";
import type { Watcher } from "./watcher.ts";

/** Interval of bookmarks, as in Kubernetes. */
export const BOOKMARK_INTERVAL_MS = 60_000;

/** The watchers of one cache, by the value of the index they use. */
export class Watchers<T extends ApiObject> {
  readonly #clock: Clock;
  readonly #indexes: Indexes<T>;
  readonly #revision: () => Revision;
  readonly #everything = new Set<Watcher<T>>();
  /** By index name, then by value. */
  readonly #indexed = new Map<string, Map<string, Set<Watcher<T>>>>();
  #timer: Timer | undefined;

  constructor(clock: Clock, indexes: Indexes<T>, revision: () => Revision) {
    this.#clock = clock;
    this.#indexes = indexes;
    this.#revision = revision;
  }

  get size(): number {
    return [...this.#all()].length;
  }

  add(watcher: Watcher<T>): void {
    this.#bucket(watcher).add(watcher);
    if (watcher.options.bookmarks === true) this.#arm();
  }

  remove(watcher: Watcher<T>): void {
    const index = watcher.options.index;
    const bucket = this.#bucket(watcher);
    bucket.delete(watcher);
    if (index !== undefined && bucket.size === 0) this.#indexed.get(index.name)?.delete(index.value);
  }

  dispatch(change: Change<T>): void {
    for (const watcher of this.#everything) watcher.offer(change);
    for (const [name, buckets] of this.#indexed) {
      const before = change.previous && this.#indexes.valueOf(name, change.previous.object);
      const after = change.current && this.#indexes.valueOf(name, change.current.object);
      this.#offer(buckets, after, change);
      if (before !== after) this.#offer(buckets, before, change);
    }
  }

  /** Ends every watch with this error. */
  failAll(error: unknown): void {
    for (const watcher of [...this.#all()]) watcher.fail(error);
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Ends every watch after its queued events. */
  endAll(): void {
    this.failAll(undefined);
  }

  #offer(buckets: Map<string, Set<Watcher<T>>>, value: string | undefined, change: Change<T>): void {
    const bucket = value === undefined ? undefined : buckets.get(value);
    if (bucket !== undefined) for (const watcher of bucket) watcher.offer(change);
  }

  #bucket(watcher: Watcher<T>): Set<Watcher<T>> {
    const index = watcher.options.index;
    if (index === undefined) return this.#everything;
    const buckets = this.#indexed.get(index.name) ?? new Map<string, Set<Watcher<T>>>();
    this.#indexed.set(index.name, buckets);
    const bucket = buckets.get(index.value) ?? new Set<Watcher<T>>();
    buckets.set(index.value, bucket);
    return bucket;
  }

  *#all(): Iterable<Watcher<T>> {
    yield* this.#everything;
    for (const buckets of this.#indexed.values()) for (const bucket of buckets.values()) yield* bucket;
  }

  /** One timer for all watchers, which runs only while one of them requests bookmarks. */
  #arm(): void {
    this.#timer ??= this.#clock.timer(BOOKMARK_INTERVAL_MS, () => {
      this.#timer = undefined;
      const requesting = [...this.#all()].filter((watcher) => watcher.options.bookmarks === true);
      for (const watcher of requesting) watcher.bookmark(this.#revision());
      if (requesting.length > 0) this.#arm();
    });
  }
}
