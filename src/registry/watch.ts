import type { ApiObject } from "../api/kind.ts";
import { StatusError } from "../api/status.ts";
import type { Revision } from "../storage/store.ts";
import { canResume, resumeWatch } from "../storage/watch/resumed-watch.ts";
import { watchUncached } from "../storage/watch/uncached-watch.ts";
import type { CacheEvent } from "../storage/watch/watch-event.ts";
import { parseResourceVersion, waitForCache } from "./read/freshness.ts";
import { type Selectors, select } from "./read/selection.ts";
import { currentRevision } from "./read/uncached.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";

export interface WatchQuery extends Selectors {
  readonly resourceVersion?: string | undefined;
  readonly allowBookmarks?: boolean | undefined;
  /** Starts with ADDED events for all objects and a bookmark, at any resourceVersion. */
  readonly sendInitialEvents?: boolean | undefined;
  /** Called once, when the initial events have been read. */
  readonly onInitialized?: (() => void) | undefined;
}

/**
 * Watches changes after `resourceVersion`; without one, or with `0`, starts with ADDED events for all objects. Fails
 * with a 410 when the resourceVersion is too old or the client too slow; ends when `scope.signal` aborts.
 */
export async function watch<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  query: WatchQuery,
): Promise<AsyncIterable<CacheEvent<T>>> {
  const { matches, index, prefix } = select(registry, scope, query);
  const version = query.resourceVersion ?? "";
  const revision = version === "" ? 0 : parseResourceVersion(version);
  const fromNow = revision === 0 || query.sendInitialEvents === true;
  const from = fromNow ? undefined : (revision as Revision);
  const bookmarks = query.allowBookmarks === true;
  const initialEventsEnd = bookmarks && query.sendInitialEvents === true;
  const { onInitialized } = query;
  const options = { prefix, matches, bookmarks, initialEventsEnd, signal: scope.signal, onInitialized };
  if (registry.isUncached || (await isOverflowing(registry))) {
    await currentRevision(registry, version);
    const { store, clock } = registry.deps;
    return watchUncached({ store, clock, objects: registry.objects, ...options, from });
  }
  const cache = fromNow ? await waitForCache(registry, scope, version) : await registry.startedCache();
  if (cache.stalled) throw storageInitializing();
  const isResumed =
    from !== undefined && registry.kind.converter === undefined && canResume(cache, from, registry.openedRevision);
  if (!isResumed) return cache.watch({ ...options, from, index });
  const { store, clock } = registry.deps;
  return resumeWatch(cache, { store, clock, objects: registry.objects, ...options, from, index });
}

/** Whether a conversion webhook makes larger objects than a cache may keep. */
async function isOverflowing<T extends ApiObject>(registry: Registry<T>): Promise<boolean> {
  return registry.kind.converter !== undefined && (await registry.startedCache()).isOverflowing;
}

/** The 429 of a cache whose conversion webhook fails. */
function storageInitializing(): StatusError {
  const details = { retryAfterSeconds: 1 };
  return new StatusError(429, "TooManyRequests", "storage is (re)initializing", { details });
}
