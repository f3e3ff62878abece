/** The bootstrap policy: Kubernetes' default roles and bindings, which the server creates at its first start. */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import type { ClusterRoleBinding } from "../../../../api/rbac/cluster-role-binding/schema.ts";
import type { Role } from "../../../../api/rbac/role/schema.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";
import type { FeatureLookup } from "../../../../flags/gates.ts";
import { clusterRoleBindings, roleBindings } from "./bindings.ts";
import { clusterRoles } from "./cluster-roles.ts";
import { controllerRoles } from "./controller-roles.ts";
import { clusterRoleBinding, serviceAccount } from "./define.ts";
import { gatedRules } from "./gated-rules.ts";
import { namespaceRoles } from "./namespace-roles.ts";

export interface Policy {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
}

const CONTROLLER = "system:controller:";

/** Each controller role is bound to the service account with the controller's name. */
function bindController({ metadata }: ClusterRole): ClusterRoleBinding {
  const name = metadata?.name ?? "";
  return clusterRoleBinding(name, name, [serviceAccount(name.slice(CONTROLLER.length))]);
}

/** The policy with the default values of all gates. */
export const bootstrapPolicy: Policy = {
  clusterRoles: [...clusterRoles, ...controllerRoles],
  clusterRoleBindings: [...clusterRoleBindings, ...controllerRoles.map(bindController)],
  roles: namespaceRoles,
  roleBindings,
};

/** The policy with the rules of the gates that are on. */
export function bootstrapPolicyWith(features: FeatureLookup): Policy {
  const enabled = gatedRules.filter(({ gates }) => gates.every((gate) => features.has(gate)));
  const added = enabled.flatMap(({ controllerRoles: roles = [] }) => roles);
  const withRules = (role: ClusterRole): ClusterRole => {
    const rules = enabled.flatMap((each) => each.rules?.[role.metadata?.name ?? ""] ?? []);
    return rules.length === 0 ? role : { ...role, rules: [...(role.rules ?? []), ...rules] };
  };
  return {
    ...bootstrapPolicy,
    clusterRoles: [...bootstrapPolicy.clusterRoles.map(withRules), ...added],
    clusterRoleBindings: [...bootstrapPolicy.clusterRoleBindings, ...added.map(bindController)],
  };
}

/** Throws for an unknown role. */
export function bootstrapRules(name: string): NonNullable<ClusterRole["rules"]> {
  const role = bootstrapPolicy.clusterRoles.find(({ metadata }) => metadata?.name === name);
  if (role === undefined) throw new Error(`Cannot find the bootstrap role ${name}`);
  return role.rules ?? [];
}
