/** Binds volumes to claims and requests new volumes before a pod is bound, and waits until all of them are there. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import type { Handle } from "../../framework/handle.ts";
import { type AssumedObjects, revisionOf } from "./assumed-objects.ts";
import { isBoundTo, isReachableFrom } from "./match-volume.ts";
import { type PodVolumes, SELECTED_NODE } from "./pod-volumes.ts";

const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";
const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";

export interface AssumedVolumes {
  readonly volumes: AssumedObjects<PersistentVolume>;
  readonly claims: AssumedObjects<PersistentVolumeClaim>;
}

/** The objects with the decisions written into them; later pods see them at once. */
export function assumePodVolumes(
  { bindings, provisions }: PodVolumes,
  nodeName: string,
  { volumes, claims }: AssumedVolumes,
): PodVolumes {
  const assumed = {
    bindings: bindings.map(({ volume, claim }) => ({ volume: boundVolume(volume, claim), claim })),
    provisions: provisions.map((claim) => ({
      ...claim,
      metadata: { ...claim.metadata, annotations: { ...claim.metadata?.annotations, [SELECTED_NODE]: nodeName } },
    })),
  };
  for (const { volume } of assumed.bindings) volumes.assume(volume);
  for (const claim of assumed.provisions) claims.assume(claim);
  return assumed;
}

export function revertPodVolumes({ bindings, provisions }: PodVolumes, { volumes, claims }: AssumedVolumes): void {
  for (const { volume } of bindings) volumes.restore(volume);
  for (const claim of provisions) claims.restore(claim);
}

/** Without changes if the volume refers to the claim already. */
function boundVolume(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata ?? {};
  const reference = volume.spec?.claimRef;
  const isComplete = reference?.name === name && reference?.namespace === namespace && reference?.uid === uid;
  const claimRef = isComplete
    ? reference
    : { kind: "PersistentVolumeClaim", namespace, name, uid, apiVersion: "v1", resourceVersion };
  const annotations = isBoundTo(volume, claim)
    ? volume.metadata?.annotations
    : { ...volume.metadata?.annotations, [BOUND_BY_CONTROLLER]: "yes" };
  return { ...volume, metadata: { ...volume.metadata, annotations }, spec: { ...volume.spec, claimRef } };
}

export function isFullyBound({ metadata, spec }: PersistentVolumeClaim): boolean {
  return Boolean(spec?.volumeName) && getMember(metadata?.annotations, BIND_COMPLETED) !== undefined;
}

/** Rejects when the volumes are not bound within the time, or cannot be. */
export async function bindPodVolumes(
  pod: PodInfo,
  node: NodeInfo,
  assumed: PodVolumes,
  handle: Handle,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const bindings: PodVolumes["bindings"][number][] = [];
  for (const { volume, claim } of assumed.bindings) {
    bindings.push({ volume: await handle.client.update(persistentVolumeKind, volume, signal), claim });
  }
  const provisions: PersistentVolumeClaim[] = [];
  for (const claim of assumed.provisions) {
    provisions.push(await handle.client.update(persistentVolumeClaimKind, claim, signal));
  }
  await waitUntilBound(pod, node, { bindings, provisions }, handle, timeoutMs, signal);
}

/** Checks after each change of a volume, a claim or the pod. */
function waitUntilBound(
  pod: PodInfo,
  node: NodeInfo,
  written: PodVolumes,
  handle: Handle,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const done = new AbortController();
  const timer = handle.clock.timer(timeoutMs, () => reject(new Error("binding volumes: context deadline exceeded")));
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  const check = (): void => {
    try {
      if (isBound(pod, node, written, handle)) resolve();
    } catch (error) {
      reject(new Error(`binding volumes: ${(error as Error).message}`));
    }
  };
  handle.onVolumeChange(check, done.signal);
  if (signal.aborted) abort();
  check();
  return promise.finally(() => {
    done.abort();
    timer.cancel();
    signal.removeEventListener("abort", abort);
  });
}

/** Throws when the volumes will not be bound any more. */
function isBound(pod: PodInfo, node: NodeInfo, { bindings, provisions }: PodVolumes, { listers }: Handle): boolean {
  if (listers.pods.get(pod.name, pod.namespace) === undefined) {
    throw new Error(`pod does not exist any more: pod "${pod.name}" not found`);
  }
  for (const { volume: written, claim } of bindings) {
    const volume = listers.volumes.get(written.metadata?.name ?? "");
    const current = listers.claims.get(claim.metadata?.name ?? "", claim.metadata?.namespace);
    if (volume === undefined || current === undefined) throw new Error("failed to check binding: object not found");
    if (revisionOf(volume) < revisionOf(written)) return false;
    requireReachable(volume, node);
    if (!volume.spec?.claimRef?.uid) throw new Error(`ClaimRef got reset for pv "${volume.metadata?.name}"`);
    if (!isFullyBound(current)) return false;
  }
  for (const written of provisions) {
    const claim = listers.claims.get(written.metadata?.name ?? "", written.metadata?.namespace);
    if (claim === undefined) throw new Error("failed to check provisioning pvc: object not found");
    if (revisionOf(claim) < revisionOf(written)) return false;
    const { name, annotations } = claim.metadata ?? {};
    if (annotations === undefined) throw new Error(`selectedNode annotation reset for PVC "${name}"`);
    // A provisioner that fails removes the annotation.
    if (getMember(annotations, SELECTED_NODE) !== node.name) throw new Error(`provisioning failed for PVC "${name}"`);
    const volumeName = claim.spec?.volumeName ?? "";
    if (volumeName !== "") {
      const volume = listers.volumes.get(volumeName);
      if (volume === undefined) return false;
      requireReachable(volume, node);
    }
    if (!isFullyBound(claim)) return false;
  }
  return true;
}

function requireReachable(volume: PersistentVolume, node: NodeInfo): void {
  if (isReachableFrom(volume, node)) return;
  const problem = "no matching NodeSelectorTerms";
  throw new Error(`pv "${volume.metadata?.name}" node affinity doesn't match node "${node.name}": ${problem}`);
}
