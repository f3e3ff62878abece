/** The resource claims that pods reference, as pod, claim and their controllers see them. */
import type { Pod } from "../core/pod/schema.ts";
import type { ResourceClaim } from "./schemas.ts";

export type PodClaim = NonNullable<NonNullable<Pod["spec"]>["resourceClaims"]>[number];

/** Any version of a claim: their metadata and status have the same fields. */
export type AnyClaim = Pick<ResourceClaim, "metadata" | "status">;

/** Keeps an allocated claim until its allocation is released. */
export const CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection";

export type ResolvedPodClaim =
  | {
      /** Undefined: the pod needs no claim. */
      readonly name: string | undefined;
      /** Whether the claim was made for this pod. */
      readonly isOwned: boolean;
      readonly problem?: undefined;
    }
  | {
      readonly problem: string;
      /** The controller has not created the claim yet; otherwise nothing will create it. */
      readonly isPending: boolean;
    };

/** The claim's name, or Kubernetes' text for why there is none. */
export function resolvePodClaim(pod: Pod, podClaim: PodClaim): ResolvedPodClaim {
  const { name, resourceClaimName, resourceClaimTemplateName } = podClaim;
  if (resourceClaimName !== undefined) return { name: resourceClaimName, isOwned: false };
  const where = `pod "${pod.metadata?.namespace ?? ""}/${pod.metadata?.name ?? ""}"`;
  if (resourceClaimTemplateName === undefined) {
    const problem = `${where}, spec.resourceClaim "${name}": none of the supported fields are set`;
    return { problem, isPending: false };
  }
  const status = pod.status?.resourceClaimStatuses?.find((each) => each.name === name);
  if (status === undefined) return { problem: `${where}: ResourceClaim not created yet`, isPending: true };
  return { name: status.resourceClaimName, isOwned: true };
}

/** Kubernetes' text for a claim that was made for another pod. */
export function explainForeignClaim(pod: Pod, { metadata }: AnyClaim): string | undefined {
  const { name = "", namespace = "", ownerReferences = [] } = metadata ?? {};
  const isOwner = ownerReferences.some(({ controller, uid }) => controller === true && uid === pod.metadata?.uid);
  if (isOwner && namespace === (pod.metadata?.namespace ?? "")) return undefined;
  const owned = `${pod.metadata?.namespace ?? ""}/${pod.metadata?.name ?? ""}`;
  return `ResourceClaim ${namespace}/${name} was not created for pod ${owned} (pod is not owner)`;
}

export function isReservedFor(pod: Pod, { status }: AnyClaim): boolean {
  return (status?.reservedFor ?? []).some(({ uid }) => uid === pod.metadata?.uid);
}

export function podConsumer({ metadata }: Pod) {
  return { resource: "pods", name: metadata?.name ?? "", uid: metadata?.uid ?? "" };
}
