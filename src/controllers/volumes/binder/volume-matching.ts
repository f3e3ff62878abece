/** Which volumes suit a claim. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { ResourceList } from "../../../api/core/resources/schema.ts";
import { matchesLabels, requirementsOf } from "../../../api/meta/selectors/selector.ts";
import { parseQuantity } from "../../../schema/value/quantity.ts";

/** In units of 10^-9 bytes. */
export function storageOf(resources: ResourceList | undefined): bigint {
  return parseQuantity(resources?.storage ?? "0")?.nanos ?? 0n;
}

/** Whether the volume is reserved for the claim: by name only, or bound to this very claim. */
export function isBoundToClaim({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const { claimRef } = spec ?? {};
  if (claimRef === undefined) return false;
  if (claimRef.name !== metadata?.name || claimRef.namespace !== metadata?.namespace) return false;
  return !claimRef.uid || claimRef.uid === metadata?.uid;
}

export function hasModeMismatch(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (volume.spec?.volumeMode || "Filesystem") !== (claim.spec?.volumeMode || "Filesystem");
}

/** The server stores the field only with the gate VolumeAttributesClass. */
function hasSameAttributesClass(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (volume.spec?.volumeAttributesClassName ?? "") === (claim.spec?.volumeAttributesClassName ?? "");
}

function hasAccessModes({ spec }: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (claim.spec?.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode) === true);
}

/** Why the volume that the claim names cannot be bound to it, in Kubernetes' words; undefined if it can. */
export function explainMismatch(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (volume.metadata?.deletionTimestamp !== undefined) {
    return `the volume is marked for deletion ${JSON.stringify(volume.metadata.name)}`;
  }
  if (storageOf(volume.spec?.capacity) < storageOf(claim.spec?.resources?.requests)) return "requested PV is too small";
  if (storageClassNameOf(volume) !== storageClassNameOf(claim)) return "storageClassName does not match";
  if (!hasSameAttributesClass(volume, claim)) return "volumeAttributesClassName does not match";
  if (hasModeMismatch(volume, claim)) return "incompatible volumeMode";
  return hasAccessModes(volume, claim) ? undefined : "incompatible accessMode";
}

/**
 * Of the volumes with the fewest access modes one that is reserved for the claim, or the smallest. A claim whose
 * binding waits for a consumer gets only a reserved one.
 */
export function findBestMatch(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  delaysBinding: boolean,
): PersistentVolume | undefined {
  const requested = storageOf(claim.spec?.resources?.requests);
  let best: PersistentVolume | undefined;
  for (const volume of volumes) {
    const isReserved = isBoundToClaim(volume, claim);
    const isFree = !delaysBinding && volume.spec?.claimRef === undefined && isAvailableFor(volume, claim);
    if (!isReserved && !isFree) continue;
    if (!hasAccessModes(volume, claim) || hasModeMismatch(volume, claim)) continue;
    if (!hasSameAttributesClass(volume, claim)) continue;
    if (storageOf(volume.spec?.capacity) < requested || volume.metadata?.deletionTimestamp !== undefined) continue;
    if (best === undefined || compareFit(volume, best, claim) < 0) best = volume;
  }
  return best;
}

export function matchesSelector({ metadata }: PersistentVolume, { spec }: PersistentVolumeClaim): boolean {
  return spec?.selector === undefined || matchesLabels(requirementsOf(spec.selector), metadata?.labels);
}

/** What is not required of a volume that is reserved for the claim. */
function isAvailableFor(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return (
    volume.status?.phase === "Available" &&
    storageClassNameOf(volume) === storageClassNameOf(claim) &&
    matchesSelector(volume, claim)
  );
}

function compareFit(a: PersistentVolume, b: PersistentVolume, claim: PersistentVolumeClaim): number {
  const modes = (a.spec?.accessModes ?? []).length - (b.spec?.accessModes ?? []).length;
  if (modes !== 0) return modes;
  const reserved = Number(isBoundToClaim(b, claim)) - Number(isBoundToClaim(a, claim));
  if (reserved !== 0) return reserved;
  const [sizeA, sizeB] = [storageOf(a.spec?.capacity), storageOf(b.spec?.capacity)];
  if (sizeA !== sizeB) return sizeA < sizeB ? -1 : 1;
  return (a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1;
}
