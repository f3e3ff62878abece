import type { ApiObject } from "../../api/kind.ts";
import type { CachedObject } from "../../storage/watch/watch-event.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { getStored } from "./uncached.ts";

/** The object after every acknowledged write: from the cache, or from the store for kinds without one. */
export async function readLatest<T extends ApiObject>(
  registry: Registry<T>,
  scope: Pick<Scope, "signal">,
  key: string,
): Promise<CachedObject<T> | undefined> {
  if (registry.bypassesCache) return await getStored(registry, key, undefined);
  const cache = await registry.freshCache(scope);
  return cache.stalled ? await getStored(registry, key, undefined) : cache.get(key);
}
