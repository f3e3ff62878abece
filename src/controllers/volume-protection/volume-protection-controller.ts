/**
 * The PVC protection and PV protection controllers: remove the protection finalizer of deleted claims and volumes that
 * are not in use, and add it to others that lack it.
 */

import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Client, WatchQuery } from "../../client/client.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { controllerOf } from "../workload/object-keys.ts";

/** Delay after a conflict or the end of a watch. */
const RETRY_DELAY_MS = 1_000;
/** A client that removes the finalizer as a rule deletes the object next, which then goes at once. */
const PROTECT_DELAY_MS = 1_000;

export async function runPvcProtectionController(deps: ControllerDeps): Promise<void> {
  await runProtection<PersistentVolumeClaim>(deps, {
    kind: persistentVolumeClaimKind,
    queueName: "pvcprotection",
    finalizer: "kubernetes.io/pvc-protection",
    findUse: async (claim, signal) => {
      const query = { namespace: claim.metadata?.namespace };
      const { items, resourceVersion } = await deps.client.list(podKind, query, signal);
      if (!items.some((pod) => usesClaim(pod, claim))) return undefined;
      return { ended: (until) => waitForUserDeletion(deps.client, { ...query, resourceVersion }, claim, until) };
    },
  });
}

/** Resolves with true if a pod that uses the claim ended before the watch did. */
async function waitForUserDeletion(
  client: Client,
  query: WatchQuery,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const event of client.watch(podKind, query, signal)) {
    if (event.type === "DELETED" && usesClaim(event.object, claim)) return true;
    if (event.type === "MODIFIED" && isShutDown(event.object)) return true;
  }
  return false;
}

export async function runPvProtectionController(deps: ControllerDeps): Promise<void> {
  await runProtection<PersistentVolume>(deps, {
    kind: persistentVolumeKind,
    queueName: "pvprotection",
    finalizer: "kubernetes.io/pv-protection",
    // The volume's own update shows that it is no longer bound.
    findUse: async ({ status }) => (status?.phase === "Bound" ? {} : undefined),
  });
}

/** Pods without a node cannot have mounted the claim, and the kubelet does not start pods with a terminating claim. */
function usesClaim(pod: Pod, claim: PersistentVolumeClaim): boolean {
  const { metadata, spec } = pod;
  if (!spec?.nodeName) return false;
  const { name: claimName } = claim.metadata ?? {};
  // A foreground deletion of the pod waits for its claims, so a claim of its own must not wait for the pod.
  const mayUseOwn = !isShutDown(pod) && controllerOf(claim)?.uid === metadata?.uid;
  return (spec.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claimName ||
      (mayUseOwn && ephemeral !== undefined && `${metadata?.name ?? ""}-${name}` === claimName),
  );
}

/** The node has stopped the pod, or it was deleted by force. */
function isShutDown({ metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined && Number(metadata.deletionGracePeriodSeconds ?? 1) === 0;
}

interface Protection<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly queueName: string;
  readonly finalizer: string;
  /** Undefined if the object is not in use. */
  readonly findUse: (object: T, signal: AbortSignal) => Promise<Use | undefined>;
}

interface Use {
  /** Resolves when the use may have ended, with true if it has; absent if the object's own updates show that. */
  readonly ended?: (signal: AbortSignal) => Promise<boolean>;
}

async function runProtection<T extends ApiObject>(deps: ControllerDeps, protection: Protection<T>): Promise<void> {
  const { client, informers, log, signal } = deps;
  const { kind, queueName, finalizer, findUse } = protection;
  /** One watch for each object that is in use. */
  const watches = new Map<string, AbortController>();
  const objects = informers.of(kind);
  const isTerminating = ({ metadata }: T): boolean => metadata?.deletionTimestamp !== undefined;
  const hasFinalizer = ({ metadata }: T): boolean => (metadata?.finalizers ?? []).includes(finalizer);
  await using queue = createControllerQueue(deps, {
    name: queueName,
    workers: 1,
    sync: syncObject,
    onError: (key, error) =>
      log.error(`Failed to remove protection finalizer of ${kind.singular}, will retry`, error, { key }),
  });

  async function syncObject(key: string, stopping: AbortSignal): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    const object = objects.get(name, namespace);
    if (object === undefined || isTerminating(object) !== hasFinalizer(object)) return;
    const { finalizers = [] } = object.metadata ?? {};
    if (!isTerminating(object)) return await write(key, object, [...finalizers, finalizer], stopping);
    const use = await findUse(object, stopping);
    if (use !== undefined) {
      if (use.ended !== undefined) syncWhenUnused(key, use.ended);
      return;
    }
    const others = finalizers.filter((other) => other !== finalizer);
    await write(key, object, others, stopping);
  }

  async function write(key: string, object: T, finalizers: readonly string[], stopping: AbortSignal): Promise<void> {
    try {
      await client.update(kind, { ...object, metadata: { ...object.metadata, finalizers } }, stopping);
    } catch (error) {
      // Another client changed the object; the informer may not have the change yet.
      if (!isNotFoundOrConflict(error)) throw error;
      if (statusCodeOf(error) === 409) queue.addAfter(key, RETRY_DELAY_MS);
    }
  }

  const syncWhenUnused = (key: string, over: (until: AbortSignal) => Promise<boolean>): void => {
    if (watches.has(key) || signal.aborted) return;
    const stop = new AbortController();
    watches.set(key, stop);
    const again = (delayMs: number): void => {
      watches.delete(key);
      if (!stop.signal.aborted && !signal.aborted) queue.addAfter(key, delayMs);
    };
    over(AbortSignal.any([signal, stop.signal])).then(
      (now) => again(now ? 0 : RETRY_DELAY_MS),
      () => again(RETRY_DELAY_MS),
    );
  };
  using subscriptions = new DisposableStack();
  const unsubscribe = objects.subscribe({
    put: (object) => {
      if (isTerminating(object) !== hasFinalizer(object)) return;
      queue.addAfter(keyOf(object), isTerminating(object) ? 0 : PROTECT_DELAY_MS);
    },
    delete: (object) => watches.get(keyOf(object))?.abort(),
  });
  subscriptions.defer(unsubscribe);
  await waitForAbort(signal);
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
