/** Ensures that each active namespace has an object with a certain name. */

import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

export interface EnsuredObject<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly name: string;
  readonly queueName: string;
  /** Returns the desired object, given the existing one; undefined if it is up to date. */
  desired(found: T | undefined): T | undefined;
  /** The sync of a namespace has ended: its duration, and the status code of its error or 200. */
  readonly onSynced?: (seconds: number, code: number) => void;
}

export async function ensureInNamespaces<T extends ApiObject>(
  deps: ControllerDeps,
  { kind, name, queueName, desired, onSynced }: EnsuredObject<T>,
): Promise<void> {
  const { client, observer, clock, random, log, signal, informers } = deps;
  const shared = { client: observer, clock, random, log };
  const namespaces = informers.of(namespaceKind);
  // Only these objects are cached, so memory grows with the number of namespaces.
  await using objects = startInformer({ ...shared, kind, query: { fieldSelector: `metadata.name=${name}` } }, signal);
  await Promise.all([namespaces.synced, objects.synced]).catch(() => {});
  await using queue = createControllerQueue(deps, {
    name: queueName,
    workers: 2,
    sync: syncNamespace,
    onError: (namespace, error) =>
      log.error(`Failed to ensure ${kind.singular}, will retry`, error, { namespace, name }),
  });

  async function syncNamespace(namespace: string, stopping: AbortSignal): Promise<void> {
    const began = clock.monotonic();
    let code = 200;
    try {
      await ensure(namespace, stopping);
    } catch (error) {
      code = statusCodeOf(error) ?? 500;
      throw error;
    } finally {
      onSynced?.((clock.monotonic() - began) / 1000, code);
    }
  }

  async function ensure(namespace: string, stopping: AbortSignal): Promise<void> {
    const home = namespaces.get(namespace);
    if (home === undefined || !isActive(home)) return;
    const found = objects.get(name, namespace);
    const next = desired(found);
    if (next === undefined) return;
    const object = { ...next, metadata: { ...next.metadata, name, namespace } };
    try {
      if (found === undefined) await client.create(kind, object, stopping);
      else await client.update(kind, object, stopping);
    } catch (error) {
      // Another client was faster, or the namespace is terminating.
      if (!isExpectedError(error)) throw error;
    }
  }

  using subscriptions = new DisposableStack();
  subscriptions.defer(namespaces.subscribe({ put: ({ metadata }) => queue.add(metadata?.name ?? "") }));
  const enqueueNamespace = ({ metadata }: T): void => queue.add(metadata?.namespace ?? "");
  objects.subscribe({ put: enqueueNamespace, delete: enqueueNamespace });
  await waitForAbort(signal);
}

function isActive({ status }: Namespace): boolean {
  return status?.phase !== "Terminating";
}

/** Also true for a 403 of a terminating namespace, which rejects new objects. */
function isExpectedError(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  const { code, details } = error.status;
  if (code === 404 || code === 409) return true;
  return code === 403 && (details?.causes ?? []).some(({ reason }) => reason === "NamespaceTerminating");
}
