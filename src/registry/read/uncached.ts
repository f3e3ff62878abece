/**
 * Reads of kinds that have no watch cache (`--watch-cache=false`, `--watch-cache-sizes`), or none at the moment because
 * a webhook fails that converts what would be in it: the store answers.
 */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import type { Revision } from "../../storage/store.ts";
import type { WatchCache } from "../../storage/watch/cache.ts";
import { EncodedObject } from "../../storage/watch/encoded-object.ts";
import type { CachedObject } from "../../storage/watch/watch-event.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { parseResourceVersion, waitForCache } from "./freshness.ts";

/** `resources`: `events`, `deployments.apps`, in either spelling of the group; or all. */
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

/** The cache, as new as `resourceVersion` asks for; undefined where the store has to answer. */
export function getCache<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  resourceVersion?: string,
): Promise<WatchCache<T> | undefined> {
  if (registry.bypassesCache) return Promise.resolve(undefined);
  const cache = waitForCache(registry, scope, resourceVersion);
  if (registry.kind.converter === undefined) return cache;
  return cache.then((found) => (found.stalled ? undefined : found));
}

/** As the store has it now; it must be at least as new as `resourceVersion`. */
export async function getStored<T extends ApiObject>(
  registry: Registry<T>,
  key: string,
  resourceVersion: string | undefined,
): Promise<CachedObject<T> | undefined> {
  currentRevision(registry, resourceVersion);
  const object = await registry.objects.get(key);
  return object && new EncodedObject(registry.kind, key, object, Number(object.metadata?.resourceVersion) as Revision);
}

/** The store's revision. Throws a 504 when it has not come to `resourceVersion`. */
export function currentRevision<T extends ApiObject>(
  registry: Registry<T>,
  resourceVersion: string | undefined,
): Revision {
  const current = registry.deps.store.current();
  const wanted = resourceVersion ? parseResourceVersion(resourceVersion) : 0;
  if (wanted <= current) return current;
  const message = `Too large resource version: ${wanted}, current: ${current}`;
  throw new StatusError(504, "Timeout", `Timeout: ${message}`, {
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  });
}
