import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Revision } from "../store.ts";
import { tooOld, type WatchCache } from "./cache.ts";
import { type UncachedWatchOptions, watchUncachedBatches } from "./uncached-watch.ts";
import type { CacheEvent } from "./watch-event.ts";
import type { WatchOptions } from "./watcher.ts";

export interface ResumedWatchOptions<T extends ApiObject>
  extends UncachedWatchOptions<T>,
    Pick<WatchOptions<T>, "index"> {
  readonly from: Revision;
}

/** A client that is further behind lists again, which costs less than to read so many changes of all kinds. */
const REVISIONS_MAX = 1000;

/**
 * Whether the store has the changes between `from` and the history of the cache, and few enough: a client had `from`
 * from another server of the store, or from this one before a restart. In a new store there is no such client.
 */
export function canResume<T extends ApiObject>(cache: WatchCache<T>, from: Revision, opened: Revision): boolean {
  const start = cache.historyStart;
  return opened > FIRST_REVISION && from < start && start - from <= REVISIONS_MAX;
}

/** The revision of an empty store. */
const FIRST_REVISION = 1;

/** Reads the changes before the history of the cache from the store, then those of the cache. */
export async function* resumeWatch<T extends ApiObject>(
  cache: WatchCache<T>,
  { index, ...options }: ResumedWatchOptions<T>,
): AsyncGenerator<CacheEvent<T>> {
  const { store, signal, onInitialized } = options;
  let { from } = options;
  onInitialized?.();
  const batches = watchUncachedBatches(options, from);
  try {
    const first = batches.next();
    // Watches of a remote store report their progress when the revision is read.
    store.readRevision?.().catch(() => {});
    for (let batch = await first; batch.done !== true; batch = await batches.next()) {
      yield* batch.value.events;
      from = batch.value.revision;
      if (from >= cache.historyStart) break;
    }
  } catch (error) {
    throw error instanceof StatusError && error.status.reason === "Expired" ? tooOld(from, cache.historyStart) : error;
  } finally {
    await batches.return(undefined);
  }
  if (signal.aborted) return;
  yield* cache.watch({ ...options, from, index, onInitialized: undefined });
}
