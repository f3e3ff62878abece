/** Lets deleted claims and volumes go once nobody uses them: takes away the finalizer that held them. */
import type { PersistentVolume } from "../../api/core/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim-kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume-kind.ts";
import type { Pod } from "../../api/core/pod.ts";
import { podKind } from "../../api/core/pod-kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { startInformer } from "../../client/informer.ts";
import { WorkQueue } from "../../std/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

/** What is still in use is looked after again at this pace. */
const AGAIN_MS = 1_000;

export async function runClaimProtection(deps: ControllerDeps): Promise<void> {
  await letGo<PersistentVolumeClaim>(deps, {
    kind: persistentVolumeClaimKind,
    finalizer: "kubernetes.io/pvc-protection",
    isUsed: async ({ metadata }, signal) => {
      const { items } = await deps.client.list(podKind, { namespace: metadata?.namespace }, signal);
      return items.some((pod) => uses(pod, metadata?.name ?? ""));
    },
  });
}

export async function runVolumeProtection(deps: ControllerDeps): Promise<void> {
  await letGo<PersistentVolume>(deps, {
    kind: persistentVolumeKind,
    finalizer: "kubernetes.io/pv-protection",
    isUsed: async ({ status }) => status?.phase === "Bound",
  });
}

/** Pods that no node has cannot have mounted anything, and no agent starts a pod whose claim is going away. */
function uses({ metadata, spec }: Pod, claim: string): boolean {
  if (!spec?.nodeName) return false;
  return (spec.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claim ||
      (ephemeral !== undefined && `${metadata?.name ?? ""}-${name}` === claim),
  );
}

interface Protection<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly finalizer: string;
  readonly isUsed: (object: T, signal: AbortSignal) => Promise<boolean>;
}

async function letGo<T extends ApiObject>(deps: ControllerDeps, protection: Protection<T>): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  const { kind, finalizer, isUsed } = protection;
  await using objects = startInformer({ client, clock, random, log, kind }, signal);
  const isWaiting = ({ metadata }: T): boolean =>
    metadata?.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(finalizer);
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (key, stopping) => {
      const [namespace = "", name = ""] = key.split("/");
      const object = objects.get(name, namespace);
      if (object === undefined || !isWaiting(object)) return;
      if (await isUsed(object, stopping)) {
        queue.addAfter(key, AGAIN_MS);
        return;
      }
      const finalizers = (object.metadata?.finalizers ?? []).filter((other) => other !== finalizer);
      try {
        await client.update(kind, { ...object, metadata: { ...object.metadata, finalizers } }, stopping);
      } catch (error) {
        // Gone, or changed meanwhile: the informer will tell.
        if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
        if (error.status.code === 409) queue.addAfter(key, AGAIN_MS);
      }
    },
    onError: (key, error) => log.error(`Cannot let the ${kind.singular} go; trying again`, error, { key }),
  });
  objects.subscribe({
    put: (object) => {
      if (isWaiting(object)) queue.add(`${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`);
    },
  });
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
