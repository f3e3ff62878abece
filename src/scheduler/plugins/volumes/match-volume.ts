/** Which existing volume a claim can be bound to, on a node. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { compareQuantityTexts } from "../../../api/meta/quantity.ts";
import { compileSelector } from "../../cache/label-match.ts";
import { matchesTerms, type SelectedNode } from "../nodes/node-selector.ts";
import { classOfClaim, classOfVolume } from "./pod-claims.ts";

/** The volume that is bound to the claim already, or the smallest that suffices. */
export function findMatchingVolume(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
  node: SelectedNode,
  excluded: ReadonlySet<string>,
): PersistentVolume | undefined {
  const className = classOfClaim(claim);
  const selector = claim.spec?.selector === undefined ? undefined : compileSelector(claim.spec.selector);
  let smallest: PersistentVolume | undefined;
  for (const volume of volumes) {
    const { metadata, spec, status } = volume;
    if (classOfVolume(volume) !== className || excluded.has(metadata?.name ?? "")) continue;
    const isBound = isBoundTo(volume, claim);
    if (spec?.claimRef !== undefined && !isBound) continue;
    if (compareQuantityTexts(sizeOf(volume), requestOf(claim)) < 0) continue;
    if ((spec?.volumeMode ?? "Filesystem") !== (claim.spec?.volumeMode ?? "Filesystem")) continue;
    if (metadata?.deletionTimestamp !== undefined) continue;
    const fitsNode = isReachableFrom(volume, node);
    // A volume that is bound to the claim and does not fit the node excludes the node.
    if (isBound) return fitsNode ? volume : undefined;
    if (!fitsNode || status?.phase !== "Available") continue;
    if (selector !== undefined && !selector.matches(metadata?.labels)) continue;
    if (!(claim.spec?.accessModes ?? []).every((mode) => spec?.accessModes?.includes(mode) === true)) continue;
    if (smallest === undefined || compareQuantityTexts(sizeOf(smallest), sizeOf(volume)) > 0) smallest = volume;
  }
  return smallest;
}

/** The reference of a volume may lack the uid. */
export function isBoundTo({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const reference = spec?.claimRef;
  if (reference === undefined) return false;
  if (reference.name !== metadata?.name || reference.namespace !== metadata?.namespace) return false;
  return !reference.uid || reference.uid === metadata?.uid;
}

/** Whether the node affinity of the volume allows the node. */
export function isReachableFrom({ spec }: PersistentVolume, { labels }: SelectedNode): boolean {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms;
  return terms === undefined || matchesTerms(terms, { name: "", labels });
}

export function requestOf({ spec }: PersistentVolumeClaim): string {
  return spec?.resources?.requests?.storage ?? "0";
}

function sizeOf({ spec }: PersistentVolume): string {
  return spec?.capacity?.storage ?? "0";
}
