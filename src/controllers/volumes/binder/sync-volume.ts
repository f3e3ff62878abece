/** Brings a volume to its desired state: available, bound, or released and reclaimed. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ObjectReference } from "../../../api/core/references/object-reference.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { statusCodeOf } from "../../api-errors.ts";
import { keyOf, objectReference } from "../../workload/object-keys.ts";
import { csiDriverOf } from "../csi-migration.ts";
import { MIGRATED_TO, PROVISIONED_BY } from "../volume-annotations.ts";
import type { BindingDeps, Bindings } from "./bindings.ts";
import { hasModeMismatch } from "./volume-matching.ts";
import { explainDeletionFailure } from "./volume-plugins.ts";
import { isRecyclable, podsUsing, type VolumeRecycler } from "./volume-recycler.ts";

const IN_TREE_PROTECTION = "kubernetes.io/pv-controller";
const EXTERNAL_PROTECTION = "external-provisioner.volume.kubernetes.io/finalizer";

export interface VolumeSyncDeps extends BindingDeps {
  readonly bindings: Bindings;
  /** Requests another sync of the claim. */
  readonly queueClaim: (key: string) => void;
  readonly recycler: VolumeRecycler;
  readonly pods: Informer<Pod>;
}

export async function syncVolume(deps: VolumeSyncDeps, found: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { bindings } = deps;
  const volume = await updateMigration(deps, found, signal);
  const { claimRef } = volume.spec ?? {};
  if (!claimRef?.uid) {
    await bindings.setVolumePhase(volume, "Available", signal);
    return;
  }
  const claim = await findClaim(deps, volume, claimRef, signal);
  if (claim === undefined) return await release(deps, volume, signal);
  const { volumeName = "" } = claim.spec ?? {};
  if (volumeName === volume.metadata?.name) {
    await bindings.setVolumePhase(volume, "Bound", signal);
  } else if (volumeName === "") {
    if (hasModeMismatch(volume, claim)) recordModeMismatch(deps, volume, claim);
    else deps.queueClaim(keyOf(claim));
  } else if (wasProvisionedForClaim(volume)) {
    // The claim was bound to another volume meanwhile.
    await release(deps, volume, signal);
  } else {
    await bindings.unbind(volume, signal);
  }
}

/** Sets the driver that an in-tree plugin has moved to, and the finalizers of volumes that the plugin deletes. */
async function updateMigration(
  { bindings }: VolumeSyncDeps,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const { annotations = {}, finalizers = [] } = volume.metadata ?? {};
  const { [MIGRATED_TO]: migratedTo, ...others } = annotations;
  const provisioner = annotations[PROVISIONED_BY];
  if (provisioner === undefined) return volume;
  const driver = csiDriverOf(provisioner);
  const protectedBy = deletionFinalizers(volume, provisioner);
  if (migratedTo === driver && deepEqual(protectedBy, finalizers)) return volume;
  const next = driver === undefined ? others : { ...others, [MIGRATED_TO]: driver };
  const metadata = { ...volume.metadata, annotations: next, finalizers: protectedBy };
  return await bindings.updateVolume({ ...volume, metadata }, signal);
}

/** The binder protects volumes of in-tree plugins with the policy Delete; an external provisioner those of its own. */
function deletionFinalizers({ metadata, spec }: PersistentVolume, provisioner: string): readonly string[] {
  const { finalizers = [] } = metadata ?? {};
  const others = finalizers.filter((name) => name !== IN_TREE_PROTECTION);
  if (csiDriverOf(provisioner) !== undefined) return others;
  if (!provisioner.startsWith("kubernetes.io/")) return finalizers;
  const own = others.filter((name) => name !== EXTERNAL_PROTECTION);
  if (spec?.persistentVolumeReclaimPolicy !== "Delete") return own;
  const isProtected = finalizers.includes(IN_TREE_PROTECTION);
  return isProtected ? finalizers.filter((name) => name !== EXTERNAL_PROTECTION) : [...own, IN_TREE_PROTECTION];
}

function wasProvisionedForClaim({ metadata, spec }: PersistentVolume): boolean {
  return metadata?.annotations?.[PROVISIONED_BY] !== undefined && spec?.persistentVolumeReclaimPolicy === "Delete";
}

/** Undefined if the claim is gone, and one of the same name is another one. */
async function findClaim(
  { claims, client }: VolumeSyncDeps,
  { status }: PersistentVolume,
  { name = "", namespace = "", uid }: ObjectReference,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim | undefined> {
  const cached = claims.get(name, namespace);
  if (cached?.metadata?.uid === uid) return cached;
  if (status?.phase === "Released" || status?.phase === "Failed") return undefined;
  // The claim of a volume that a scheduler or a provisioner has bound may be newer than the cache.
  const found = await client.get(persistentVolumeClaimKind, { name, namespace }, signal).catch((error: unknown) => {
    if (statusCodeOf(error) === 404) return undefined;
    throw error;
  });
  return found?.metadata?.uid === uid ? found : undefined;
}

function recordModeMismatch(
  { recorder }: VolumeSyncDeps,
  volume: PersistentVolume,
  claim: PersistentVolumeClaim,
): void {
  const [volumeName, claimName] = [volume, claim].map(({ metadata }) => JSON.stringify(metadata?.name));
  recorder.record(
    objectReference(volume),
    "Warning",
    "VolumeMismatch",
    `Cannot bind PersistentVolume to requested PersistentVolumeClaim ${claimName} due to incompatible volumeMode.`,
  );
  recorder.record(
    objectReference(claim),
    "Warning",
    "VolumeMismatch",
    `Cannot bind PersistentVolume ${volumeName} to requested PersistentVolumeClaim due to incompatible volumeMode.`,
  );
}

async function release(deps: VolumeSyncDeps, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  const { phase } = volume.status ?? {};
  const isMarked = phase === "Released" || phase === "Failed";
  const released = isMarked ? volume : await deps.bindings.setVolumePhase(volume, "Released", signal);
  if (released.metadata?.annotations?.[MIGRATED_TO] === undefined) await reclaim(deps, released, signal);
}

async function reclaim(deps: VolumeSyncDeps, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
  const fail = async (reason: string, message: string): Promise<void> =>
    void (await deps.bindings.setVolumePhase(volume, "Failed", signal, { type: "Warning", reason, message }));
  switch (volume.spec?.persistentVolumeReclaimPolicy) {
    case "Retain":
      return;
    case "Recycle":
      return await recycleVolume(deps, volume, fail, signal);
    case "Delete":
      return await deleteVolume(deps, volume, fail, signal);
    default:
      return await fail("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy");
  }
}

async function recycleVolume(
  { recorder, pods, claims, recycler, bindings }: VolumeSyncDeps,
  volume: PersistentVolume,
  fail: (reason: string, message: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  if (!isRecyclable(volume)) return await fail("VolumeFailedRecycle", "No recycler plugin found for the volume!");
  const { name = "", namespace } = volume.spec?.claimRef ?? {};
  const users = podsUsing(volume, pods.list());
  if (users.length > 0 && claims.get(name, namespace) === undefined) {
    const message = `Volume is used by pods: ${users.join(",")}`;
    recorder.record(objectReference(volume), "Normal", "VolumeFailedRecycle", message);
    return;
  }
  const result = recycler.recycle(volume);
  if (result === undefined) return;
  if (result.error !== undefined) return await fail("VolumeFailedRecycle", `Recycle failed: ${result.error}`);
  recorder.record(objectReference(volume), "Normal", "VolumeRecycled", "Volume recycled");
  await bindings.unbind(volume, signal);
}

async function deleteVolume(
  { client, bindings }: VolumeSyncDeps,
  volume: PersistentVolume,
  fail: (reason: string, message: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const provisioner = volume.metadata?.annotations?.[PROVISIONED_BY] ?? "";
  const isExternal = provisioner === "" ? volume.spec?.csi !== undefined : !provisioner.startsWith("kubernetes.io/");
  // Its own provisioner deletes the volume, or its administrator.
  if (isExternal) return;
  const problem = explainDeletionFailure(volume);
  if (problem !== undefined) return await fail("VolumeFailedDelete", problem);
  const { name = "", uid, finalizers = [] } = volume.metadata ?? {};
  if (finalizers.includes(IN_TREE_PROTECTION)) {
    const others = finalizers.filter((finalizer) => finalizer !== IN_TREE_PROTECTION);
    await bindings.updateVolume({ ...volume, metadata: { ...volume.metadata, finalizers: others } }, signal);
  }
  await client.delete(persistentVolumeKind, { name }, { preconditions: { uid } }, signal).catch((error: unknown) => {
    if (statusCodeOf(error) !== 404) throw error;
  });
}
