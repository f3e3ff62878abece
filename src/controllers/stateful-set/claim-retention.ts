/**
 * Owner references of a stateful set's claims, by its retention policy: the garbage collector deletes a claim with the
 * pod that is scaled down, or with the set.
 */
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";
import { controllerReference } from "../workload/object-keys.ts";
import { isInRange } from "./stateful-pods.ts";

interface RetentionPolicy {
  readonly whenDeleted: string;
  readonly whenScaled: string;
}

export function retentionPolicy({ spec }: StatefulSet): RetentionPolicy {
  const { whenDeleted, whenScaled } = spec?.persistentVolumeClaimRetentionPolicy ?? {};
  return { whenDeleted: whenDeleted || "Retain", whenScaled: whenScaled || "Retain" };
}

/** What the claim's references are: by names, since those of deleted owners have other UIDs. */
function refersTo(reference: OwnerReference, owner: ApiObject): boolean {
  const { apiVersion, kind, metadata } = owner;
  return reference.apiVersion === apiVersion && reference.kind === kind && reference.name === metadata?.name;
}

function isOwnedBy({ metadata }: PersistentVolumeClaim, owner: ApiObject): boolean {
  return metadata?.ownerReferences?.some(({ uid }) => uid === owner.metadata?.uid) ?? false;
}

/** The claim refers to an earlier object of the same name, which is being deleted together with it. */
export function hasStaleReference({ metadata }: PersistentVolumeClaim, owner: ApiObject): boolean {
  const reference = metadata?.ownerReferences?.find((one) => refersTo(one, owner));
  return reference !== undefined && reference.uid !== owner.metadata?.uid;
}

/** The claim has a controller that is neither the set nor the pod, though the policy requires one of those. */
export function hasUnexpectedController(claim: PersistentVolumeClaim, set: StatefulSet, pod: Pod): boolean {
  const { whenDeleted, whenScaled } = retentionPolicy(set);
  if (whenDeleted === "Retain" && whenScaled === "Retain") return false;
  return (claim.metadata?.ownerReferences ?? []).some((reference) => {
    const owner = [set, pod].find((one) => refersTo(reference, one));
    return owner === undefined ? reference.controller === true : reference.uid !== owner.metadata?.uid;
  });
}

/** Undefined for neither. */
function wantedOwner(set: StatefulSet, pod: Pod): StatefulSet | Pod | undefined {
  const { whenDeleted, whenScaled } = retentionPolicy(set);
  if (whenScaled === "Delete" && !isInRange(set, pod)) return pod;
  return whenDeleted === "Delete" ? set : undefined;
}

export function hasWantedOwner(claim: PersistentVolumeClaim, set: StatefulSet, pod: Pod): boolean {
  if (hasStaleReference(claim, set) || hasStaleReference(claim, pod)) return true;
  if (hasUnexpectedController(claim, set, pod)) return !isOwnedBy(claim, set) && !isOwnedBy(claim, pod);
  const own = (claim.metadata?.ownerReferences ?? []).filter(
    ({ uid }) => uid === set.metadata?.uid || uid === pod.metadata?.uid,
  );
  if (own.some(({ controller }) => controller !== true)) return false;
  const wanted = wantedOwner(set, pod);
  return [set, pod].every((owner) => isOwnedBy(claim, owner) === (owner === wanted));
}

export function withWantedOwner(claim: PersistentVolumeClaim, set: StatefulSet, pod: Pod): PersistentVolumeClaim {
  const others = (claim.metadata?.ownerReferences ?? []).filter(
    (reference) => !refersTo(reference, set) && !refersTo(reference, pod),
  );
  const owner = hasUnexpectedController(claim, set, pod) ? undefined : wantedOwner(set, pod);
  const ownerReferences = owner === undefined ? others : [...others, controllerReference(owner)];
  return { ...claim, metadata: { ...claim.metadata, ownerReferences } };
}
