import type { ApiObject } from "../../api/kind.ts";
import { expired } from "../../api/status.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ObjectStore } from "../object-store.ts";
import { type KeyValue, prefixRange, type Revision, type Store, StoreError, type WatchEvent } from "../store.ts";
import { Change } from "./change.ts";
import { EncodedObject } from "./encoded-object.ts";
import type { CacheEvent, ObjectEvent } from "./watch-event.ts";
import type { WatchOptions } from "./watcher.ts";
import { BOOKMARK_INTERVAL_MS } from "./watchers.ts";

export interface UncachedWatchOptions<T extends ApiObject> extends Omit<WatchOptions<T>, "index"> {
  readonly store: Store;
  readonly objects: ObjectStore<T>;
  readonly clock: Clock;
}

/**
 * Watches the store, for kinds without a watch cache: each change is decoded for each watcher. Reads from the store
 * only when its reader does, so a slow reader uses no memory; when compaction overtakes it, it fails with 410.
 */
export async function* watchUncached<T extends ApiObject>(
  options: UncachedWatchOptions<T>,
): AsyncGenerator<CacheEvent<T>> {
  const { store, objects, clock, prefix, matches, bookmarks, initialEventsEnd, onInitialized, signal } = options;
  const encoded = (item: KeyValue): EncodedObject<T> =>
    new EncodedObject(objects.kind, item.key, objects.decode(item), item.modified);
  let from = options.from;
  if (from === undefined) {
    const page = await store.list(prefixRange(prefix));
    for (const item of await objects.toKindVersion(page.items)) {
      if (signal.aborted) return;
      const found = encoded(item);
      if (matches?.(found) !== false) yield found.added;
    }
    from = page.revision;
    if (initialEventsEnd === true) yield { type: "BOOKMARK", revision: from, initialEventsEnd };
  }
  onInitialized?.();
  let marked = clock.monotonic();
  for await (const { events, revision } of watchUncachedBatches(options, from)) {
    yield* events;
    if (bookmarks !== true || clock.monotonic() - marked < BOOKMARK_INTERVAL_MS) continue;
    marked = clock.monotonic();
    yield { type: "BOOKMARK", revision, initialEventsEnd: false };
  }
}

interface EventBatch<T extends ApiObject> {
  readonly events: readonly ObjectEvent<T>[];
  readonly revision: Revision;
}

/** The changes after `from`; fails with a 410 when they are compacted. */
export async function* watchUncachedBatches<T extends ApiObject>(
  { store, objects, prefix, matches, signal }: Omit<UncachedWatchOptions<T>, "from">,
  from: Revision,
): AsyncGenerator<EventBatch<T>, undefined> {
  const encoded = (item: KeyValue): EncodedObject<T> =>
    new EncodedObject(objects.kind, item.key, objects.decode(item), item.modified);
  const { converter } = objects.kind;
  try {
    for await (const { events: stored, revision } of store.watch(prefixRange(prefix), from, signal)) {
      const shown = converter === undefined ? stored : await shownEvents(stored, objects);
      const events = shown.map((event) => changeOf(event, encoded).eventFor(matches));
      yield { events: events.filter((event) => event !== undefined), revision };
    }
  } catch (error) {
    if (error instanceof StoreError && error.code === "compacted") throw expired(TOO_OLD);
    throw error;
  }
}

/** The message of Kubernetes without a watch cache. */
const TOO_OLD = "The resourceVersion for the provided watch is too old.";

/** Converts both states of each event for `decode`. */
async function shownEvents<T extends ApiObject>(
  events: readonly WatchEvent[],
  objects: ObjectStore<T>,
): Promise<readonly WatchEvent[]> {
  const states = events.flatMap((event) => [event.type === "put" ? event.item : undefined, event.previous]);
  const shown = (await objects.toKindVersion(states.filter((state) => state !== undefined))).values();
  const next = (state: KeyValue | undefined): KeyValue | undefined => state && shown.next().value;
  return events.map((event) => {
    if (event.type === "delete") return { ...event, previous: next(event.previous)! };
    return { ...event, item: next(event.item)!, previous: next(event.previous) };
  });
}

function changeOf<T extends ApiObject>(event: WatchEvent, encoded: (item: KeyValue) => EncodedObject<T>): Change<T> {
  const failure = (event.type === "put" ? event.item : event.previous).failure;
  if (failure !== undefined) throw failure;
  const previous = event.previous && encoded(event.previous);
  const current = event.type === "put" ? encoded(event.item) : undefined;
  return new Change(event.type === "put" ? event.item.modified : event.revision, previous, current, 0);
}
