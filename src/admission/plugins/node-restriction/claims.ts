/** Of claims a node tells how large their volumes have become. */

import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";
import type { Deps } from "./restriction.ts";

export function restrictClaim(node: string, request: AdmissionRequest, { isFeatureEnabled }: Deps): void {
  if (request.subresource !== "status") throw newForbidden(request, "may only update PVC status");
  if (request.operation !== "UPDATE") {
    throw newForbidden(request, `unexpected operation ${JSON.stringify(request.operation)}`);
  }
  const mayRecover = isFeatureEnabled("RecoverVolumeExpansionFailure");
  const next = withoutGrowth(request.object as PersistentVolumeClaim, mayRecover);
  const previous = withoutGrowth(request.oldObject as PersistentVolumeClaim, mayRecover);
  if (semanticEqual(persistentVolumeClaimKind.schema, next, previous)) return;
  const changed = changedMembers(next, previous).join(", ");
  const why = `is not allowed to update fields other than status.capacity and status.conditions: ${changed}`;
  throw newForbidden(request, `node ${JSON.stringify(node)} ${why}`);
}

/** All that it may not change. Who manages what, and the version that was seen, are of no interest. */
function withoutGrowth(claim: PersistentVolumeClaim, mayRecover: boolean): PersistentVolumeClaim {
  const { resourceVersion: _, managedFields: __, ...metadata } = metadataOf(claim);
  const { capacity, conditions, allocatedResources, allocatedResourceStatuses, ...status } = claim.status ?? {};
  const kept = mayRecover ? status : { ...status, allocatedResources, allocatedResourceStatuses };
  return { ...claim, metadata, status: kept };
}

/** `metadata.labels`, `spec.resources` */
function changedMembers(next: PersistentVolumeClaim, previous: PersistentVolumeClaim): readonly string[] {
  return (["metadata", "spec", "status"] as const).flatMap((part) => {
    const [is, was]: readonly Readonly<Record<string, unknown>>[] = [next[part] ?? {}, previous[part] ?? {}];
    const members = new Set([...Object.keys(is!), ...Object.keys(was!)]);
    return [...members]
      .filter((member) => JSON.stringify(is![member]) !== JSON.stringify(was![member]))
      .map((member) => `${part}.${member}`)
      .sort();
  });
}
