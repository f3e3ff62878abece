import type { ApiObject } from "../api/kind.ts";
import { notFound } from "../api/status.ts";
import type { CachedObject } from "../storage/watch/cache.ts";
import { caughtUp } from "./freshness.ts";
import type { Registry, Scope } from "./registry.ts";
import { getStored } from "./uncached.ts";

/** `resourceVersion`: absent means what is newest, `0` what the cache has, any other at least that. */
export async function get<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  resourceVersion?: string,
): Promise<CachedObject<T>> {
  const key = registry.key(scope, name);
  const found = registry.uncached
    ? await getStored(registry, key, resourceVersion)
    : (await caughtUp(registry, scope, resourceVersion)).get(key);
  if (found === undefined) throw notFound(registry.subject(scope, name));
  return found;
}
