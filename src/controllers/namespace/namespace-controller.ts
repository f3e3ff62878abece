/**
 * The namespace controller: deletes the content of terminating namespaces, pods first, reports what remains in the
 * conditions, and removes the finalizer when nothing does.
 */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { ignoreNotFound } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { statusCodeOf } from "../api-errors.ts";
import { type ControllerDeps, isFeatureEnabled } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { builtinContentKinds, customContentKinds, extensionContentKinds } from "./content-kinds.ts";
import { type DeletionProgress, type RemainingResources, updateConditions } from "./deletion-conditions.ts";

const FINALIZER = "kubernetes";
/** After a change of a terminating namespace; all instances of the API server refuse new objects by then. */
const GRACE_PERIOD_MS = 5_000;
const BACKOFF = { initialMs: 5, maxMs: 60_000, jitter: 0 };
/** How long objects with finalizers are expected to remain. */
const FINALIZER_SECONDS = 15;
/** The page size of Kubernetes' clients. */
const PAGE_SIZE = 500;
const CONCURRENT_DELETES = 8;

export async function runNamespaceController(deps: ControllerDeps): Promise<void> {
  const { client, log, signal, informers } = deps;
  const namespaces = informers.of(namespaceKind);
  const builtin = builtinContentKinds(deps.kinds);
  await using queue = createControllerQueue(deps, {
    name: "namespace",
    workers: 10,
    backoff: BACKOFF,
    sync: syncNamespace,
    onError: (name, error) => log.error("Failed to delete namespace content, will retry", error, { namespace: name }),
  });

  async function syncNamespace(name: string, stopping: AbortSignal): Promise<void> {
    const cached = namespaces.get(name);
    if (cached === undefined || !isTerminating(cached)) return;
    const namespace = await client.get(namespaceKind, { name }, stopping).catch(ignoreNotFound);
    if (namespace === undefined || !isTerminating(namespace)) return;
    const remainingSeconds = await deleteContent(deps, builtin, namespace, stopping);
    if (remainingSeconds > 0) queue.addAfter(name, (Math.floor(remainingSeconds / 2) + 1) * 1000);
  }

  using subscriptions = new DisposableStack();
  const unsubscribe = namespaces.subscribe({
    put: (namespace) => {
      // Changes of the conditions too: an attempt after one comes five seconds later at the latest.
      if (isTerminating(namespace)) queue.addAfter(namespace.metadata?.name ?? "", GRACE_PERIOD_MS);
    },
    delete: ({ metadata }) => queue.forget(metadata?.name ?? ""),
  });
  subscriptions.defer(unsubscribe);
  await waitForAbort(signal);
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata?.deletionTimestamp !== undefined && (namespace.spec?.finalizers ?? []).includes(FINALIZER);
}

/**
 * One attempt. Resolves with the seconds that the remaining objects are expected to take; 0 if the namespace was empty
 * and is finalized. Rejects if a deletion failed.
 */
async function deleteContent(
  deps: ControllerDeps,
  builtin: readonly Kind[],
  namespace: Namespace,
  signal: AbortSignal,
): Promise<number> {
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
  const extensions = await extensionContentKinds(deps.client, signal);
  if (extensions.failure !== undefined) discoveryError ??= recordError(new Error(extensions.failure));
  const isOrdered = isFeatureEnabled(deps, "OrderedNamespaceDeletion");
  let seconds = 0;
  for (const kind of [...builtin, ...custom, ...extensions.kinds]) {
    try {
      const left = await deleteAll(deps, kind, namespace, signal);
      if (left !== undefined) {
        remains.push(left);
        if (left.seconds === 0) throw new Error(explainUnexpected(namespace.metadata?.name ?? "", kind));
        seconds = Math.max(seconds, left.seconds);
      }
    } catch (error) {
      failures.push(recordError(error));
    }
    // Ordered deletion: other kinds wait until all pods have stopped.
    if (!isOrdered || kind.kind !== podKind.kind || remains.length === 0) continue;
    // As in Kubernetes, the conditions do not mention the pods.
    await updateStatus(deps, namespace, { remains: [], failures, discovery: discoveryError }, signal);
    if (errors.length > 0) throw errors[0];
    return seconds;
  }
  await updateStatus(deps, namespace, { remains, failures, discovery: discoveryError }, signal);
  if (errors.length > 0) throw errors[0];
  if (seconds === 0) await finalize(deps, namespace, signal);
  return seconds;
}

function explainUnexpected(namespace: string, { group, version, plural }: Kind): string {
  const resource = `${kubernetesGroup(group)}/${version}, Resource=${plural}`;
  return `unexpected items still remain in namespace: ${namespace} for gvr: ${resource}`;
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

interface RemainingObjects extends RemainingResources {
  /** How long they are expected to remain; 0: they should be gone. */
  readonly seconds: number;
}

/** Deletes all objects of the kind that are not terminating yet. Returns what remains. */
async function deleteAll(
  { client, clock }: ControllerDeps,
  kind: Kind,
  { metadata }: Namespace,
  signal: AbortSignal,
): Promise<RemainingObjects | undefined> {
  const namespace = metadata?.name ?? "";
  let graceSeconds = 0;
  const elapsedMs = clock.now() - Date.parse(metadata?.deletionTimestamp ?? "");
  let isEmpty = true;
  const listed: Kind = kind.kind === podKind.kind ? kind : metadataOnly(kind);
  for await (const items of pages(client, listed, namespace, signal)) {
    if (items.length > 0) isEmpty = false;
    graceSeconds = Math.max(graceSeconds, ...items.map(gracePeriodOf));
    const living = items.filter((item) => item.metadata?.deletionTimestamp === undefined);
    for (let start = 0; start < living.length; start += CONCURRENT_DELETES) {
      await Promise.all(
        living.slice(start, start + CONCURRENT_DELETES).map((item) => deleteOne(client, kind, item, signal)),
      );
    }
  }
  if (isEmpty) return undefined;
  let count = 0;
  const finalizers = new Map<string, number>();
  for await (const items of pages(client, metadataOnly(kind), namespace, signal)) {
    count += items.length;
    for (const item of items) {
      for (const name of item.metadata?.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  if (count === 0) return undefined;
  const stopping = elapsedMs >= graceSeconds * 1000 ? 0 : graceSeconds;
  const seconds = stopping === 0 && finalizers.size > 0 ? FINALIZER_SECONDS : stopping;
  return { resource: `${kind.plural}.${kubernetesGroup(kind.group)}`, count, finalizers, seconds };
}

/** Seconds; 0 for a pod that has finished and for other objects. */
function gracePeriodOf(object: ApiObject): number {
  const { spec, status } = object as Partial<Pod>;
  const isFinished = status?.phase === "Succeeded" || status?.phase === "Failed";
  return isFinished ? 0 : Number(spec?.terminationGracePeriodSeconds ?? 0);
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
      const page = await client.list(kind, query, signal);
      yield page.items;
      next = page.continue;
    } catch (error) {
      // The CRD may have been deleted; an expired continue token is left to the next attempt.
      if ((kind.custom === true && statusCodeOf(error) === 404) || statusCodeOf(error) === 410) return;
      throw error;
    }
  } while (next !== undefined && next !== "");
}

/** Updates the conditions if they changed. Roles allow no patch of the status; conflicts are retried. */
async function updateStatus(
  { client, clock }: ControllerDeps,
  namespace: Namespace,
  progress: DeletionProgress,
  signal: AbortSignal,
): Promise<void> {
  const { name = "", uid } = namespace.metadata ?? {};
  let live: Namespace | undefined = namespace;
  while (live !== undefined && live.metadata?.uid === uid) {
    const before = live.status?.conditions ?? [];
    const own = updateConditions(before, progress, formatTime(clock.now()));
    if (own === undefined) return;
    const others = before.filter(({ type }) => own.every((condition) => condition.type !== type));
    const status: Namespace["status"] = { ...live.status, conditions: [...others, ...own] };
    try {
      await client.updateStatus(namespaceKind, { ...live, status }, signal);
      return;
    } catch (error) {
      if (statusCodeOf(error) === 404) return;
      if (statusCodeOf(error) !== 409) throw error;
    }
    live = await client.get(namespaceKind, { name }, signal).catch(ignoreNotFound);
  }
}
