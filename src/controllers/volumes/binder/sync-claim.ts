/** Brings a claim to its desired state: bound to a volume, waiting for one, or lost. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { keyOf, objectReference } from "../../workload/object-keys.ts";
import { csiDriverOf } from "../csi-migration.ts";
import {
  BETA_STORAGE_PROVISIONER,
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  MIGRATED_TO,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
} from "../volume-annotations.ts";
import type { BindingDeps, Bindings, PhaseEvent } from "./bindings.ts";
import { delaysBinding, findDefaultClass } from "./storage-classes.ts";
import { explainMismatch, findBestMatch, isBoundToClaim, matchesSelector } from "./volume-matching.ts";
import type { BinderMetrics } from "./volume-metrics.ts";

export interface ClaimSyncDeps extends BindingDeps {
  readonly bindings: Bindings;
  readonly classes: Informer<StorageClass>;
  readonly metrics?: BinderMetrics | undefined;
  /** Whether volumes are requested from the provisioners of classes. */
  readonly provisionsVolumes: boolean;
  /** The pods of a namespace that use the claim. */
  readonly podsOfClaim: (claim: PersistentVolumeClaim) => readonly Pod[];
}

export async function syncClaim(deps: ClaimSyncDeps, found: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const claim = await updateMigration(deps, found, signal);
  if (claim.metadata?.annotations?.[BIND_COMPLETED] !== undefined) await syncBoundClaim(deps, claim, signal);
  else if (claim.spec?.volumeName) await syncClaimOfVolume(deps, claim, claim.spec.volumeName, signal);
  else await syncPendingClaim(deps, claim, signal);
}

async function updateMigration(
  { bindings }: ClaimSyncDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const { annotations = {} } = claim.metadata ?? {};
  const provisioner = annotations[STORAGE_PROVISIONER] ?? annotations[BETA_STORAGE_PROVISIONER];
  if (provisioner === undefined) return claim;
  const { [MIGRATED_TO]: migratedTo, ...others } = annotations;
  const driver = csiDriverOf(provisioner);
  if (migratedTo === driver) return claim;
  const next = driver === undefined ? others : { ...others, [MIGRATED_TO]: driver };
  return await bindings.updateClaim({ ...claim, metadata: { ...claim.metadata, annotations: next } }, signal);
}

/** A claim that names no volume yet. */
async function syncPendingClaim(deps: ClaimSyncDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { bindings, volumes, classes } = deps;
  const isDelayed = delaysBinding(claim, classes);
  const volume = findBestMatch(claim, volumes.list(), isDelayed);
  if (volume !== undefined) return await bindings.bind(volume, claim, signal);
  // A new volume becomes available with its first sync, which queues the claim again.
  if (!isDelayed && hasNewVolume(volumes.list(), claim)) return;
  if (await assignDefaultClass(deps, claim, signal)) return;
  if (isDelayed && claim.metadata?.annotations?.[SELECTED_NODE] === undefined) recordWaiting(deps, claim);
  else if (storageClassNameOf(claim) !== "") return await requestVolume(deps, claim, signal);
  else {
    const message = "no persistent volumes available for this claim and no storage class is set";
    record(deps, claim, { type: "Normal", reason: "FailedBinding", message });
  }
  await bindings.setClaimPhase(claim, "Pending", {}, signal);
}

function hasNewVolume(volumes: Iterable<PersistentVolume>, claim: PersistentVolumeClaim): boolean {
  for (const volume of volumes) {
    const isNew = volume.status?.phase === "Pending" && volume.spec?.claimRef === undefined;
    if (isNew && explainMismatch(volume, claim) === undefined && matchesSelector(volume, claim)) return true;
  }
  return false;
}

/** Sets the default class for a claim that was created before that class. */
async function assignDefaultClass(
  { bindings, classes, metrics }: ClaimSyncDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<boolean> {
  if (claim.spec?.storageClassName !== undefined || storageClassNameOf(claim) !== "") return false;
  const storageClassName = findDefaultClass(classes)?.metadata?.name;
  if (storageClassName === undefined) return false;
  try {
    await bindings.updateClaim({ ...claim, spec: { ...claim.spec, storageClassName } }, signal);
  } catch (error) {
    metrics?.defaultClassErrors.inc();
    throw error;
  }
  metrics?.defaultClassAssigned.inc();
  return true;
}

function recordWaiting(deps: ClaimSyncDeps, claim: PersistentVolumeClaim): void {
  const unscheduled = deps.podsOfClaim(claim).filter(({ spec, status }) => {
    const isFinished = status?.phase === "Succeeded" || status?.phase === "Failed";
    return !isFinished && !spec?.nodeName;
  });
  const names = unscheduled.map(({ metadata }) => metadata?.name ?? "");
  const pods = `${names.length === 1 ? "pod" : "pods"} ${names.join(",")}`;
  record(
    deps,
    claim,
    names.length === 0
      ? {
          type: "Normal",
          reason: "WaitForFirstConsumer",
          message: "waiting for first consumer to be created before binding",
        }
      : { type: "Normal", reason: "WaitForPodScheduled", message: `waiting for ${pods} to be scheduled` },
  );
}

/** Marks the claim for the provisioner of its class, which creates a volume that is reserved for the claim. */
async function requestVolume(deps: ClaimSyncDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  if (!deps.provisionsVolumes) return;
  const name = storageClassNameOf(claim);
  const storageClass = deps.classes.get(name);
  if (storageClass === undefined) {
    const message = `storageclass.storage.k8s.io ${JSON.stringify(name)} not found`;
    return record(deps, claim, { type: "Warning", reason: "ProvisioningFailed", message });
  }
  const { provisioner } = storageClass;
  const driver = csiDriverOf(provisioner);
  if (driver === undefined && provisioner.startsWith("kubernetes.io/")) {
    const message = `no volume plugin matched name: ${provisioner}`;
    return record(deps, claim, { type: "Warning", reason: "ProvisioningFailed", message });
  }
  const marked = await markProvisioner(deps, claim, driver ?? provisioner, signal);
  const message =
    `Waiting for a volume to be created either by the external provisioner '${driver ?? provisioner}' or manually ` +
    "by the system administrator. If volume creation is delayed, please verify that the provisioner is running and " +
    "correctly registered.";
  record(deps, marked, { type: "Normal", reason: "ExternalProvisioning", message });
}

async function markProvisioner(
  { bindings }: ClaimSyncDeps,
  claim: PersistentVolumeClaim,
  provisioner: string,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const { annotations } = claim.metadata ?? {};
  if (annotations?.[STORAGE_PROVISIONER] === provisioner) return claim;
  const marks = { [BETA_STORAGE_PROVISIONER]: provisioner, [STORAGE_PROVISIONER]: provisioner };
  const metadata = { ...claim.metadata, annotations: { ...annotations, ...marks } };
  return await bindings.updateClaim({ ...claim, metadata }, signal);
}

/** A claim whose user, or whose interrupted binding, names the volume. */
async function syncClaimOfVolume(
  deps: ClaimSyncDeps,
  claim: PersistentVolumeClaim,
  volumeName: string,
  signal: AbortSignal,
): Promise<void> {
  const { bindings, volumes } = deps;
  const volume = volumes.get(volumeName);
  if (volume === undefined) return await bindings.setClaimPhase(claim, "Pending", {}, signal);
  const problem = explainConflict(volume, claim);
  if (problem === undefined) return await bindings.bind(volume, claim, signal);
  record(deps, claim, problem);
  if (volume.spec?.claimRef !== undefined) rejectOwnBinding(volume, claim);
  await bindings.setClaimPhase(claim, "Pending", {}, signal);
}

function explainConflict(volume: PersistentVolume, claim: PersistentVolumeClaim): PhaseEvent | undefined {
  const quotedName = JSON.stringify(volume.metadata?.name);
  if (volume.spec?.claimRef === undefined) {
    const mismatch = explainMismatch(volume, claim);
    const message = `Cannot bind to requested volume ${quotedName}: ${mismatch}`;
    return mismatch === undefined ? undefined : { type: "Warning", reason: "VolumeMismatch", message };
  }
  if (isBoundToClaim(volume, claim)) return undefined;
  const message = `volume ${quotedName} already bound to a different claim.`;
  return { type: "Warning", reason: "FailedBinding", message };
}

/** Throws if not a user but this controller has bound the claim to the volume of another one. */
function rejectOwnBinding({ metadata, spec }: PersistentVolume, claim: PersistentVolumeClaim): void {
  if (claim.metadata?.annotations?.[BOUND_BY_CONTROLLER] === undefined) return;
  const { namespace, name } = spec?.claimRef ?? {};
  const [key, volume, owner] = [keyOf(claim), metadata?.name, `${namespace}/${name}`].map((text) =>
    JSON.stringify(text),
  );
  throw new Error(`invalid binding of claim ${key} to volume ${volume}: volume already claimed by ${owner}`);
}

async function syncBoundClaim(deps: ClaimSyncDeps, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
  const { bindings, volumes } = deps;
  const lose = async (reason: string, message: string): Promise<void> =>
    await bindings.setClaimPhase(claim, "Lost", { event: { type: "Warning", reason, message } }, signal);
  const { volumeName = "" } = claim.spec ?? {};
  if (volumeName === "") {
    return await lose("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  }
  const volume = volumes.get(volumeName);
  if (volume === undefined) {
    return await lose("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  }
  const { claimRef } = volume.spec ?? {};
  if (claimRef === undefined || claimRef.uid === claim.metadata?.uid) return await bindings.bind(volume, claim, signal);
  await lose("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
}

function record({ recorder }: ClaimSyncDeps, claim: PersistentVolumeClaim, event: PhaseEvent): void {
  recorder.record(objectReference(claim), event.type, event.reason, event.message);
}
