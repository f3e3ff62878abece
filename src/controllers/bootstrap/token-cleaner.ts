/** Deletes bootstrap tokens whose time is over. */

import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { StatusError } from "../../api/status.ts";
import { BOOTSTRAP_NAMESPACES, expiryOf, isBootstrapToken } from "../../auth/authn/token/bootstrap-token.ts";
import { type ReflectorEvent, reflect } from "../../client/informer/reflector.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import type { ControllerDeps } from "../controller.ts";

export async function runTokenCleaner(deps: ControllerDeps): Promise<void> {
  await Promise.all(BOOTSTRAP_NAMESPACES.map((namespace) => clean(namespace, deps)));
}

async function clean(namespace: string, deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: (name, stopping) => expire(name, stopping),
    onError: (name, error) => log.error("Cannot delete a bootstrap token; trying again", error, { namespace, name }),
  });
  // Of each token nothing is kept but its name and its time.
  using due = new KeyTimers(clock, (name) => queue.add(name));

  async function expire(name: string, stopping: AbortSignal): Promise<void> {
    try {
      // Its time may have been put off since.
      const secret = await client.get(secretKind, { name, namespace }, stopping);
      const expiry = lastsUntil(secret);
      if (expiry === undefined) return;
      if (expiry > clock.now()) {
        due.set(name, expiry - clock.now());
        return;
      }
      const { uid, resourceVersion } = secret.metadata ?? {};
      const preconditions = { uid, resourceVersion };
      await client.delete(secretKind, { name, namespace }, { preconditions }, stopping);
      log.info("Deleted a bootstrap token whose time was over", { namespace, name });
    } catch (error) {
      if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
      // Changed meanwhile: the watch tells what its time is now.
    }
  }
  const observe = (secret: Secret): void => {
    const expiry = lastsUntil(secret);
    if (expiry === undefined) due.delete(nameOf(secret));
    else due.set(nameOf(secret), expiry - clock.now());
  };
  const onEvent = (event: ReflectorEvent<Secret>): void => {
    if (event.type === "replace") {
      due.clear();
      for (const secret of event.items) observe(secret);
    } else if (event.type === "put") observe(event.object);
    else due.delete(nameOf(event.object));
  };
  await reflect({ client: observer, clock, random, log, kind: secretKind, query: { namespace }, onEvent }, signal);
}

function nameOf({ metadata }: Secret): string {
  return metadata?.name ?? "";
}

/** Milliseconds since 1970. A time that cannot be read is over, as in Kubernetes: nobody can use the token. */
function lastsUntil(secret: Secret): number | undefined {
  if (!isBootstrapToken(secret) || secret.metadata?.deletionTimestamp !== undefined) return undefined;
  const expiry = expiryOf(secret);
  return Number.isNaN(expiry) ? Number.NEGATIVE_INFINITY : expiry;
}
