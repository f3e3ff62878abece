/** What the controller has to do for a pod. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import { explainForeignClaim, isReservedFor, resolvePodClaim } from "../../api/resource/pod-claims.ts";

type FindClaim = (name: string, namespace: string) => FlatResourceClaim | undefined;

/** None of its containers runs or will run. */
export function isPodDone({ metadata, spec, status }: Pod): boolean {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return true;
  return metadata?.deletionTimestamp !== undefined && !spec?.nodeName;
}

/** The claims that exist by the pod's spec and status. */
export function listClaimNames(pod: Pod): readonly string[] {
  return (pod.spec?.resourceClaims ?? []).flatMap((podClaim) => {
    const resolved = resolvePodClaim(pod, podClaim);
    return resolved.problem === undefined && resolved.name !== undefined ? [resolved.name] : [];
  });
}

/** Whether a claim of the pod has to be created, or reserved since no scheduler has done it. */
export function needsWork(pod: Pod, find: FindClaim): boolean {
  if (pod.metadata?.deletionTimestamp !== undefined || isPodDone(pod)) return false;
  for (const podClaim of pod.spec?.resourceClaims ?? []) {
    const resolved = resolvePodClaim(pod, podClaim);
    if (resolved.problem !== undefined) return true;
    const { name, isOwned } = resolved;
    if (name === undefined) return false;
    const claim = find(name, pod.metadata?.namespace ?? "");
    if (claim === undefined) return podClaim.resourceClaimTemplateName !== undefined;
    if (isOwned && explainForeignClaim(pod, claim) !== undefined) return false;
    if (needsReservation(pod, claim)) return true;
  }
  return false;
}

/** The pod was bound without a scheduler that reserves its claims. */
export function needsReservation(pod: Pod, claim: FlatResourceClaim): boolean {
  return Boolean(pod.spec?.nodeName) && claim.status?.allocation !== undefined && !isReservedFor(pod, claim);
}
