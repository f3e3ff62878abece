/** Keeps one object of a certain name in every namespace that is not on its way out. */

import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

export interface Singleton<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly name: string;
  /** What is to be there, seen what is; undefined leaves it alone. Asked again after every change. */
  wanted(found: T | undefined): T | undefined;
}

export async function keepInEveryNamespace<T extends ApiObject>(
  deps: ControllerDeps,
  { kind, name, wanted }: Singleton<T>,
): Promise<void> {
  const { client, observer, clock, random, log, signal } = deps;
  const shared = { client: observer, clock, random, log };
  await using namespaces = startInformer({ ...shared, kind: namespaceKind }, signal);
  // Just these objects, so that memory goes with the number of namespaces.
  await using objects = startInformer({ ...shared, kind, query: { fieldSelector: `metadata.name=${name}` } }, signal);
  await Promise.all([namespaces.synced, objects.synced]).catch(() => {});
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 2,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (namespace, stopping) => {
      const home = namespaces.get(namespace);
      if (home === undefined || !isActive(home)) return;
      const found = objects.get(name, namespace);
      const next = wanted(found);
      if (next === undefined) return;
      const object = { ...next, metadata: { ...next.metadata, name, namespace } };
      try {
        if (found === undefined) await client.create(kind, object, stopping);
        else await client.update(kind, object, stopping);
      } catch (error) {
        // Somebody else was quicker, or the namespace goes: the informers will tell.
        if (!isOvertaken(error)) throw error;
      }
    },
    onError: (namespace, error) =>
      log.error(`Cannot keep the ${kind.singular}; trying again`, error, { namespace, name }),
  });
  namespaces.subscribe({ put: ({ metadata }) => queue.add(metadata?.name ?? "") });
  const changed = ({ metadata }: T): void => queue.add(metadata?.namespace ?? "");
  objects.subscribe({ put: changed, delete: changed });
  await waitForAbort(signal);
}

function isActive({ status }: Namespace): boolean {
  return status?.phase !== "Terminating";
}

/** Also 403 of a namespace that is being deleted: new objects are refused there. */
function isOvertaken(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  const { code, details } = error.status;
  if (code === 404 || code === 409) return true;
  return code === 403 && (details?.causes ?? []).some(({ reason }) => reason === "NamespaceTerminating");
}
