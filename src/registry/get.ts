import type { ApiObject } from "../api/kind.ts";
import { notFound } from "../api/status.ts";
import type { CachedObject } from "../storage/watch/watch-event.ts";
import { getCache, getStored } from "./read/uncached.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";

/** Without `resourceVersion` reads the latest state, with `0` any state in the cache, else one that is not older. */
export async function get<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  resourceVersion?: string,
): Promise<CachedObject<T>> {
  const key = registry.key(scope, name);
  const fresh = getCache(registry, scope, resourceVersion);
  const cache = fresh instanceof Promise ? await fresh : fresh;
  const found = cache === undefined ? await getStored(registry, key, resourceVersion) : cache.get(key);
  if (found === undefined) throw notFound(registry.subject(scope, name));
  return found;
}
