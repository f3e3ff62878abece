/** Removes released volumes: first the directory, then the object. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { ignoreNotFound } from "../../../api/status.ts";
import { statusCodeOf } from "../../api-errors.ts";
import { objectReference } from "../../workload/object-keys.ts";
import { messageOf } from "../../workload/pod-control.ts";
import { removeDirectory } from "./node-volumes.ts";
import { nodeOfVolume, PROVISIONER_FINALIZER, type ProvisioningDeps } from "./provision-volume.ts";

export async function reclaimVolume(
  deps: ProvisioningDeps,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<void> {
  const { client } = deps;
  const { name = "", uid, deletionTimestamp } = volume.metadata ?? {};
  const { persistentVolumeReclaimPolicy: policy } = volume.spec ?? {};
  const isReleased = volume.status?.phase === "Released";
  if (policy === "Delete" && isReleased) await remove(deps, volume, signal);
  // The data of a volume with another policy stays when the object is deleted; that of a bound volume too.
  else if (deletionTimestamp === undefined || volume.status?.phase === "Bound") return;
  if (deletionTimestamp === undefined) {
    const deleted = client.delete(persistentVolumeKind, { name }, { preconditions: { uid } }, signal);
    await deleted.catch(ignoreNotFound);
  }
  await removeFinalizer(deps, name, uid, signal);
}

async function remove(deps: ProvisioningDeps, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { name = "" } = volume.metadata ?? {};
  const node = nodeOfVolume(volume, deps.nodes);
  // The data of a node that was removed from the cluster cannot be reached.
  if (node === undefined) return;
  try {
    await removeDirectory(deps.client, node.metadata?.name ?? "", name, signal);
  } catch (error) {
    signal.throwIfAborted();
    // As Kubernetes reports a volume in use: that of a pod without a grace period is unmounted after the pod is gone.
    const [type, reason] =
      statusCodeOf(error) === 409
        ? (["Normal", "VolumeDelete"] as const)
        : (["Warning", "VolumeFailedDelete"] as const);
    deps.recorder.record(objectReference(volume), type, reason, messageOf(error));
    throw error;
  }
}

async function removeFinalizer(
  { client }: ProvisioningDeps,
  name: string,
  uid: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const volume = await client.get(persistentVolumeKind, { name }, signal).catch(ignoreNotFound);
  if (volume === undefined || volume.metadata?.uid !== uid) return;
  const finalizers = (volume.metadata?.finalizers ?? []).filter((finalizer) => finalizer !== PROVISIONER_FINALIZER);
  if (finalizers.length === volume.metadata?.finalizers?.length) return;
  await client
    .update(persistentVolumeKind, { ...volume, metadata: { ...volume.metadata, finalizers } }, signal)
    .catch(ignoreNotFound);
}
