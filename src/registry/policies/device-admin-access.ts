/** Claims that request administrative access to devices need a label of their namespace. */
import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { storageKindOf } from "../../api/kind.ts";
import type { ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate } from "../../api/resource/schemas.ts";
import { forbiddenField } from "../../schema/validation/field-error.ts";
import type { ClusterPolicy } from "../registry.ts";

/** The value "true" allows administrative access. */
const ADMIN_LABEL = "resource.k8s.io/admin-access";

/** Checks new claims and templates. `findNamespace` returns undefined for a namespace that does not exist. */
export function requireAdminLabel(findNamespace: (name: string) => Namespace | undefined): ClusterPolicy {
  return (kind, next, previous) => {
    if (previous !== undefined || kind.group !== "resource.svc.io") return [];
    const stored: ApiObject = kind.conversion?.toStorage(next) ?? next;
    if (!requestsAdminAccess(claimSpec(storageKindOf(kind).kind, stored))) return [];
    const labels = findNamespace(next.metadata?.namespace ?? "")?.metadata?.labels;
    if (labels?.[ADMIN_LABEL] === "true") return [];
    const detail = `admin access to devices requires the \`${ADMIN_LABEL}: true\` label on the containing namespace`;
    return [forbiddenField("", detail)];
  };
}

function claimSpec(kind: string, object: ApiObject): ResourceClaimSpec | undefined {
  if (kind === "ResourceClaim") return (object as ResourceClaim).spec;
  return kind === "ResourceClaimTemplate" ? (object as ResourceClaimTemplate).spec.spec : undefined;
}

function requestsAdminAccess(spec: ResourceClaimSpec | undefined): boolean {
  return spec?.devices?.requests?.some(({ exactly }) => exactly?.adminAccess === true) ?? false;
}

/** All policies in order. */
export function combinePolicies(...policies: readonly (ClusterPolicy | undefined)[]): ClusterPolicy | undefined {
  const present = policies.filter((policy) => policy !== undefined);
  if (present.length === 0) return undefined;
  return (kind, next, previous) => present.flatMap((policy) => policy(kind, next, previous));
}
