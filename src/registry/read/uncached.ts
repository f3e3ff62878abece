/**
 * Reads from the store: of kinds without a watch cache (`--watch-cache=false`, `--watch-cache-sizes`), and of kinds
 * whose cache is stalled because their conversion webhook fails, or because a value cannot be decrypted.
 */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { latestRevision, type Revision } from "../../storage/store.ts";
import type { WatchCache } from "../../storage/watch/cache.ts";
import { EncodedObject } from "../../storage/watch/encoded-object.ts";
import type { CachedObject } from "../../storage/watch/watch-event.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { parseResourceVersion, tooLargeResourceVersion, waitForCache } from "./freshness.ts";

/** `resources` are `events` or `deployments.apps`, with either group alias; or `all`. */
export function uncachedKinds(resources: "all" | readonly string[]): (kind: Kind) => boolean {
  if (resources === "all") return () => true;
  const named = new Set(
    resources.map((resource) => {
      const [plural = "", ...group] = resource.split(".");
      return `${plural}.${svcGroup(group.join("."))}`;
    }),
  );
  return (kind) => named.has(`${kind.plural}.${kind.group}`);
}

/** The cache once it is not older than `resourceVersion`; undefined where the read goes to the store. */
export function getCache<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  resourceVersion?: string,
): MaybePromise<WatchCache<T> | undefined> {
  if (registry.bypassesCache) return undefined;
  const { cacheInUse, deps } = registry;
  const isLatest = resourceVersion === undefined || resourceVersion === "";
  // Mostly there is nothing to wait for; a cache may stall in the meantime.
  if (isLatest && deps.store.readRevision === undefined && cacheInUse?.stalled === false && registry.isFresh) {
    return cacheInUse;
  }
  return waitForCache(registry, scope, resourceVersion).then((cache) => (cache.stalled ? undefined : cache));
}

/** Reads the object from the store. Throws a 504 when the store is older than `resourceVersion`. */
export async function getStored<T extends ApiObject>(
  registry: Registry<T>,
  key: string,
  resourceVersion: string | undefined,
): Promise<CachedObject<T> | undefined> {
  await currentRevision(registry, resourceVersion);
  const object = await registry.objects.get(key);
  return object && new EncodedObject(registry.kind, key, object, Number(object.metadata?.resourceVersion) as Revision);
}

/** The store's revision. Throws a 504 when it is older than `resourceVersion`. */
export async function currentRevision<T extends ApiObject>(
  registry: Registry<T>,
  resourceVersion: string | undefined,
): Promise<Revision> {
  const current = await latestRevision(registry.deps.store);
  const requested = resourceVersion ? parseResourceVersion(resourceVersion) : 0;
  if (requested <= current) return current;
  throw tooLargeResourceVersion(String(requested), current);
}
