/** Claims that are generated from templates for pods. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { FlatResourceClaim, FlatResourceClaimTemplate } from "../../api/resource/flat-versions/schemas.ts";
import type { PodClaim } from "../../api/resource/pod-claims.ts";

/** Its value is the name of the pod's claim in its spec. */
export const POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name";

/** Names have at most 63 characters, of which the server adds five, after a hyphen. */
const BASE_MAX = 57;

export interface TemplateFeatures {
  readonly adminAccess: boolean;
  readonly prioritizedList: boolean;
}

/** Kubernetes' text for a template that needs a gate that is off. */
export function explainDisabledTemplate(
  { spec }: FlatResourceClaimTemplate,
  { adminAccess, prioritizedList }: TemplateFeatures,
): string | undefined {
  const requests = spec.spec.devices?.requests ?? [];
  if (!adminAccess && requests.some((request) => request.adminAccess === true)) {
    return "admin access is requested, but the feature is disabled";
  }
  if (!prioritizedList && requests.some(({ firstAvailable = [] }) => firstAvailable.length > 0)) {
    return "template includes a prioritized list of subrequests, but the feature is disabled";
  }
  return undefined;
}

export function makeGeneratedClaim(
  pod: Pod,
  podClaim: PodClaim,
  { spec }: FlatResourceClaimTemplate,
): FlatResourceClaim {
  const { name = "", namespace = "", uid = "" } = pod.metadata ?? {};
  const owner = { apiVersion: "v1", kind: "Pod", name, uid, controller: true, blockOwnerDeletion: true };
  const { annotations, labels } = spec.metadata ?? {};
  return {
    metadata: {
      generateName: generatedName(name, podClaim.name),
      namespace,
      annotations: { ...annotations, [POD_CLAIM_ANNOTATION]: podClaim.name },
      ...(labels === undefined ? {} : { labels }),
      ownerReferences: [owner],
    },
    spec: spec.spec,
  };
}

/** Both names are shortened in proportion to their lengths. */
export function generatedName(pod: string, claim: string): string {
  const whole = `${pod}-${claim}-`;
  if (whole.length <= BASE_MAX) return whole;
  const shorten = (name: string): string => name.slice(0, Math.floor((name.length * BASE_MAX) / whole.length));
  return `${shorten(pod)}-${shorten(claim)}`;
}
