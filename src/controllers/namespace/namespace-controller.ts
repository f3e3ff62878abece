/**
 * The namespace controller: deletes the content of terminating namespaces, pods first, reports what remains in the
 * conditions, and removes the finalizer when nothing does.
 */

import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import type { Client } from "../../client/client.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { Backoff } from "../../std/time/backoff.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { builtinContentKinds, customContentKinds } from "./content-kinds.ts";
import { type DeletionProgress, type RemainingResources, updateConditions } from "./deletion-conditions.ts";

const FINALIZER = "kubernetes";
/** Delays between attempts while objects with grace periods or finalizers remain. */
const REMAINING_BACKOFF = { initialMs: 1_000, maxMs: 15_000, jitter: 0.1 };
/** The page size of Kubernetes' clients. */
const PAGE_SIZE = 500;
const CONCURRENT_DELETES = 8;

export async function runNamespaceController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using namespaces = startInformer({ client, clock, random, log, kind: namespaceKind }, signal);
  const builtin = builtinContentKinds(deps.kinds);
  /** The backoff of each namespace with remaining content. */
  const remaining = new Map<string, Backoff>();
  await using queue = createControllerQueue(deps, {
    workers: 2,
    sync: syncNamespace,
    onError: (name, error) => log.error("Failed to delete namespace content, will retry", error, { namespace: name }),
  });

  async function syncNamespace(name: string, stopping: AbortSignal): Promise<void> {
    const namespace = namespaces.get(name);
    if (namespace === undefined || !isTerminating(namespace)) return;
    if (await deleteContent(deps, builtin, namespace, stopping)) {
      remaining.delete(name);
      return;
    }
    const again = remaining.get(name) ?? new Backoff(REMAINING_BACKOFF, random);
    remaining.set(name, again);
    queue.addAfter(name, again.next());
  }

  namespaces.subscribe({
    put: (namespace, previous) => {
      if (!isTerminating(namespace)) return;
      // Later updates come from this controller's conditions.
      if (previous === undefined || !isTerminating(previous)) queue.add(namespace.metadata?.name ?? "");
    },
    delete: ({ metadata }) => {
      remaining.delete(metadata?.name ?? "");
      queue.forget(metadata?.name ?? "");
    },
  });
  await waitForAbort(signal);
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata?.deletionTimestamp !== undefined && (namespace.spec?.finalizers ?? []).includes(FINALIZER);
}

/** One attempt. Resolves with true if the namespace was empty and is finalized; rejects if a deletion failed. */
async function deleteContent(
  deps: ControllerDeps,
  builtin: readonly Kind[],
  namespace: Namespace,
  signal: AbortSignal,
): Promise<boolean> {
  const errors: unknown[] = [];
  const recordError = (error: unknown): string => {
    signal.throwIfAborted();
    errors.push(error);
    return error instanceof Error ? error.message : String(error);
  };
  const remains: RemainingResources[] = [];
  const failures: string[] = [];
  let discoveryError: string | undefined;
  const custom = await customContentKinds(deps.client, signal).catch((error: unknown) => {
    discoveryError = recordError(error);
    return [];
  });
  const name = namespace.metadata?.name ?? "";
  for (const kind of [...builtin, ...custom]) {
    try {
      const left = await deleteAll(deps.client, kind, name, signal);
      if (left !== undefined) remains.push(left);
    } catch (error) {
      failures.push(recordError(error));
    }
    // Ordered deletion: other kinds wait until all pods have stopped.
    if (kind.kind !== podKind.kind || remains.length + failures.length === 0) continue;
    // As in Kubernetes, the conditions do not mention the pods.
    await updateStatus(deps, namespace, { remains: [], failures, discovery: discoveryError }, signal);
    if (errors.length > 0) throw errors[0];
    return false;
  }
  await updateStatus(deps, namespace, { remains, failures, discovery: discoveryError }, signal);
  if (errors.length > 0) throw errors[0];
  if (remains.length > 0) return false;
  await finalize(deps, namespace, signal);
  return true;
}

/** Another instance of the controller may remove the finalizer first; conflicts are retried. */
async function finalize({ client, log }: ControllerDeps, namespace: Namespace, signal: AbortSignal): Promise<void> {
  const name = namespace.metadata?.name ?? "";
  for (;;) {
    try {
      const live = await client.get(namespaceKind, { name }, signal);
      if (live.metadata?.uid !== namespace.metadata?.uid || !isTerminating(live)) return;
      const finalizers = (live.spec?.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
      await client.updateSubresource(namespaceKind, { ...live, spec: { finalizers } }, "finalize", signal);
      log.v(2)?.info("Finalized namespace", { namespace: name });
      return;
    } catch (error) {
      if (statusCodeOf(error) === 404) return;
      if (statusCodeOf(error) !== 409) throw error;
    }
  }
}

/** Deletes all objects of the kind that are not terminating yet. Returns what remains. */
async function deleteAll(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): Promise<RemainingResources | undefined> {
  let isEmpty = true;
  for await (const items of pages(client, kind, namespace, signal)) {
    if (items.length > 0) isEmpty = false;
    const living = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    for (let start = 0; start < living.length; start += CONCURRENT_DELETES) {
      await Promise.all(
        living.slice(start, start + CONCURRENT_DELETES).map((item) => deleteOne(client, kind, item, signal)),
      );
    }
  }
  if (isEmpty) return undefined;
  let count = 0;
  const finalizers = new Map<string, number>();
  for await (const items of pages(client, kind, namespace, signal)) {
    count += items.length;
    for (const { metadata } of items) {
      for (const name of metadata?.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  if (count === 0) return undefined;
  return { resource: `${kind.plural}.${kubernetesGroup(kind.group)}`, count, finalizers };
}

/** The dependents are in the namespace too, so background deletion suffices. */
async function deleteOne(client: Client, kind: Kind, { metadata }: ApiObject, signal: AbortSignal): Promise<void> {
  const { name = "", namespace, uid } = metadata ?? {};
  try {
    await client.delete(kind, { name, namespace }, { propagationPolicy: "Background", preconditions: { uid } }, signal);
  } catch (error) {
    // Deleted or replaced; the next attempt handles a replacement.
    if (statusCodeOf(error) !== 404 && statusCodeOf(error) !== 409) throw error;
  }
}

async function* pages(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): AsyncGenerator<readonly ApiObject[]> {
  let next: string | undefined;
  do {
    const query = { namespace, limit: PAGE_SIZE, continue: next };
    try {
      const page = await client.list(metadataOnly(kind), query, signal);
      yield page.items;
      next = page.continue;
    } catch (error) {
      // The CRD may have been deleted; an expired continue token is left to the next attempt.
      if ((kind.custom === true && statusCodeOf(error) === 404) || statusCodeOf(error) === 410) return;
      throw error;
    }
  } while (next !== undefined && next !== "");
}

/** Updates the conditions if they changed. */
async function updateStatus(
  { client, clock }: ControllerDeps,
  { metadata, status }: Namespace,
  progress: DeletionProgress,
  signal: AbortSignal,
): Promise<void> {
  const conditions = updateConditions(status?.conditions ?? [], progress, formatTime(clock.now()));
  if (conditions === undefined) return;
  try {
    const name = { name: metadata?.name ?? "" };
    await client.patch(namespaceKind, name, "strategic", { status: { conditions } }, { subresource: "status", signal });
  } catch (error) {
    if (statusCodeOf(error) !== 404) throw error;
  }
}
