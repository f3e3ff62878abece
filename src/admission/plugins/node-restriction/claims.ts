/** A node may only report the capacity and conditions of claims after volume expansion. */

import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { Deps } from "./restriction.ts";

export function restrictClaim(node: string, request: AdmissionRequest, { isFeatureEnabled }: Deps): void {
  if (request.subresource !== "status") throw newForbidden(request, "may only update PVC status");
  if (request.operation !== "UPDATE") {
    throw newForbidden(request, `unexpected operation ${JSON.stringify(request.operation)}`);
  }
  const recoverExpansion = isFeatureEnabled("RecoverVolumeExpansionFailure");
  const next = withoutAllowedFields(request.object as PersistentVolumeClaim, recoverExpansion);
  const previous = withoutAllowedFields(request.oldObject as PersistentVolumeClaim, recoverExpansion);
  if (semanticEqual(persistentVolumeClaimKind.schema, next, previous)) return;
  const changed = changedFields(next, previous).join(", ");
  const reason = `is not allowed to update fields other than status.capacity and status.conditions: ${changed}`;
  throw newForbidden(request, `node ${JSON.stringify(node)} ${reason}`);
}

/** The claim without the fields that a node may change, and without resourceVersion and managedFields. */
function withoutAllowedFields(claim: PersistentVolumeClaim, recoverExpansion: boolean): PersistentVolumeClaim {
  const { resourceVersion: _, managedFields: __, ...metadata } = metadataOf(claim);
  const { capacity, conditions, allocatedResources, allocatedResourceStatuses, ...status } = claim.status ?? {};
  const unchanged = recoverExpansion ? status : { ...status, allocatedResources, allocatedResourceStatuses };
  return { ...claim, metadata, status: unchanged };
}

/** `metadata.labels`, `spec.resources` */
function changedFields(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): readonly string[] {
  return (["metadata", "spec", "status"] as const).flatMap((part) => {
    const [is, was]: readonly Readonly<Record<string, unknown>>[] = [next[part] ?? {}, previous[part] ?? {}];
    const members = new Set([...Object.keys(is!), ...Object.keys(was!)]);
    return [...members]
      .filter((member) => JSON.stringify(is![member]) !== JSON.stringify(was![member]))
      .map((member) => `${part}.${member}`)
      .sort();
  });
}
