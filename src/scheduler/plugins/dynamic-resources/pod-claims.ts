/** The claims of a pod, and which of their changes may make the pod schedulable. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { FlatResourceClaim } from "../../../api/resource/flat-versions/schemas.ts";
import { explainForeignClaim, resolvePodClaim } from "../../../api/resource/pod-claims.ts";
import { deepEqual } from "../../../schema/value/equal.ts";

type FindClaim = (name: string, namespace: string) => FlatResourceClaim | undefined;

/** The claims, or Kubernetes' text for why the pod has to wait. */
export function findPodClaims(pod: Pod, find: FindClaim): readonly FlatResourceClaim[] | string {
  const namespace = pod.metadata?.namespace ?? "";
  const claims: FlatResourceClaim[] = [];
  for (const podClaim of pod.spec?.resourceClaims ?? []) {
    const resolved = resolvePodClaim(pod, podClaim);
    if (resolved.problem !== undefined) return resolved.problem;
    const { name, isOwned } = resolved;
    if (name === undefined) continue;
    const claim = find(name, namespace);
    if (claim === undefined) return `could not find ResourceClaim "${namespace}/${name}"`;
    if (claim.metadata?.deletionTimestamp !== undefined) return `resourceclaim "${name}" is being deleted`;
    const problem = isOwned ? explainForeignClaim(pod, claim) : undefined;
    if (problem !== undefined) return problem;
    claims.push(claim);
  }
  return claims;
}

/** The pod's own claim was created or has another status, or any claim has released its devices. */
export function isSchedulableAfterClaimChange(
  pod: Pod,
  before: FlatResourceClaim | undefined,
  after: FlatResourceClaim,
  find: FindClaim,
): boolean {
  const claims = findPodClaims(pod, find);
  if (typeof claims === "string") return false;
  if (before?.status?.allocation !== undefined && after.status?.allocation === undefined) return true;
  if (!claims.some(({ metadata }) => metadata?.uid === after.metadata?.uid)) return false;
  return before === undefined || !deepEqual(before.status, after.status);
}
