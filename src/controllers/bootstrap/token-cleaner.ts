/** The token cleaner: deletes expired bootstrap tokens. */

import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { BOOTSTRAP_NAMESPACES, expiryOf, isBootstrapToken } from "../../auth/authn/token/bootstrap-token.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

export async function runTokenCleaner(deps: ControllerDeps): Promise<void> {
  await Promise.all(BOOTSTRAP_NAMESPACES.map((namespace) => runForNamespace(namespace, deps)));
}

async function runForNamespace(namespace: string, deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  await using queue = createControllerQueue(deps, {
    name: "token_cleaner",
    workers: 1,
    sync: syncToken,
    onError: (name, error) =>
      log.error("Failed to delete expired bootstrap token, will retry", error, { namespace, name }),
  });
  // Only the name and expiration of each token are kept in memory.
  using expirations = new KeyTimers(clock, (name) => queue.add(name));

  async function syncToken(name: string, stopping: AbortSignal): Promise<void> {
    try {
      // The expiration may have been extended since the event.
      const secret = await client.get(secretKind, { name, namespace }, stopping);
      const expiry = expirationOf(secret);
      if (expiry === undefined) return;
      if (expiry > clock.now()) {
        expirations.set(name, expiry - clock.now());
        return;
      }
      const { uid, resourceVersion } = secret.metadata ?? {};
      const preconditions = { uid, resourceVersion };
      await client.delete(secretKind, { name, namespace }, { preconditions }, stopping);
      log.info("Deleted expired bootstrap token", { namespace, name });
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
      // The watch reports the new expiration.
    }
  }
  const observe = (secret: Secret): void => {
    const expiry = expirationOf(secret);
    if (expiry === undefined) expirations.delete(nameOf(secret));
    else expirations.set(nameOf(secret), expiry - clock.now());
  };
  const onEvent = (event: ReflectorEvent<Secret>): void => {
    if (event.type === "replace") {
      expirations.clear();
      for (const secret of event.items) observe(secret);
    } else if (event.type === "put") observe(event.object);
    else expirations.delete(nameOf(event.object));
  };
  await reflect({ client: observer, clock, random, log, kind: secretKind, query: { namespace }, onEvent }, signal);
}

function nameOf({ metadata }: Secret): string {
  return metadata?.name ?? "";
}

/** Milliseconds since 1970. An invalid expiration counts as expired, as in Kubernetes. */
function expirationOf(secret: Secret): number | undefined {
  if (!isBootstrapToken(secret) || secret.metadata?.deletionTimestamp !== undefined) return undefined;
  const expiry = expiryOf(secret);
  return Number.isNaN(expiry) ? Number.NEGATIVE_INFINITY : expiry;
}
