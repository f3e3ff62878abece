import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Revision } from "../../storage/store.ts";
import type { WatchCache } from "../../storage/watch/cache.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";

/** How long a read waits for a resourceVersion that is newer than the store. */
const FUTURE_WAIT_MS = 3000;

/** Throws a 500 with the message of Go's strconv, as Kubernetes does when it reads one object and for a watch. */
export function parseResourceVersion(text: string): Revision {
  const isNumber = /^\d+$/.test(text);
  if (isNumber && BigInt.asUintN(64, BigInt(text)) === BigInt(text)) return Number(text) as Revision;
  const why = isNumber ? "value out of range" : "invalid syntax";
  const quoted = goQuote(text);
  const parse = `strconv.ParseUint: parsing ${quoted}: ${why}`;
  throw new StatusError(500, "", `resourceVersion: Invalid value: ${quoted}: ${parse}`);
}

/** The version as Go prints the number. */
function formatVersion(text: string): string {
  return BigInt(text).toString();
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
  if (revision > cache.revision()) await waitForRevision(registry, scope, revision, resourceVersion);
  return cache;
}

/** The 504 for a resourceVersion that is newer than the store. It proposes a retry unless the version is exact. */
export function tooLargeResourceVersion(requested: string, current: Revision, exact = false): StatusError {
  return new StatusError(504, "Timeout", `Timeout: Too large resource version: ${requested}, current: ${current}`, {
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      ...(exact ? {} : { retryAfterSeconds: 1 }),
    },
  });
}

async function waitForRevision<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  revision: Revision,
  text: string,
): Promise<void> {
  const { clock, store } = registry.deps;
  const timeout = new AbortController();
  const timer = clock.timer(FUTURE_WAIT_MS, () => {
    timeout.abort(tooLargeResourceVersion(formatVersion(text), store.current()));
  });
  try {
    await registry.cache.waitFor(revision, AbortSignal.any([scope.signal, timeout.signal]));
  } finally {
    timer.cancel();
  }
}
