import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Revision } from "../../storage/store.ts";
import type { WatchCache } from "../../storage/watch/cache.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";

/** How long a read waits for a resourceVersion that is newer than the store. */
const FUTURE_WAIT_MS = 3000;

/** Throws a 400 with the message of Go's strconv. */
export function parseResourceVersion(text: string): Revision {
  if (!/^\d+$/.test(text) || Number(text) > Number.MAX_SAFE_INTEGER) {
    throw new StatusError(
      400,
      "BadRequest",
      `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return Number(text) as Revision;
}

/** Resolves with the cache once it is not older than the resourceVersion, or has every acknowledged write. */
export async function waitForCache<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  resourceVersion?: string,
): Promise<WatchCache<T>> {
  if (resourceVersion === undefined || resourceVersion === "") return await registry.freshCache(scope);
  const revision = parseResourceVersion(resourceVersion);
  const cache = await registry.startedCache();
  if (revision > cache.revision()) await waitForRevision(registry, scope, revision);
  return cache;
}

/** The 504 for a resourceVersion that is newer than the store. */
export function tooLargeResourceVersion(versions: string): StatusError {
  return new StatusError(504, "Timeout", `Timeout: Too large resource version: ${versions}`, {
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  });
}

async function waitForRevision<T extends ApiObject>(registry: Registry<T>, scope: Scope, revision: Revision) {
  const { clock, store } = registry.deps;
  const timeout = new AbortController();
  const timer = clock.timer(FUTURE_WAIT_MS, () => {
    timeout.abort(tooLargeResourceVersion(`${revision}, current: ${store.current()}`));
  });
  try {
    await registry.cache.waitFor(revision, AbortSignal.any([scope.signal, timeout.signal]));
  } finally {
    timer.cancel();
  }
}
