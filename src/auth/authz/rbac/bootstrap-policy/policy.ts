/**
 * What is granted before anybody has granted anything: Kubernetes' bootstrap roles and bindings, as the objects that a
 * server makes at its first start.
 */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import type { ClusterRoleBinding } from "../../../../api/rbac/cluster-role-binding/schema.ts";
import type { Role } from "../../../../api/rbac/role/schema.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";
import { clusterRoleBindings, roleBindings } from "./bindings.ts";
import { clusterRoles } from "./cluster-roles.ts";
import { controllerRoles } from "./controller-roles.ts";
import { account, clusterRoleBinding } from "./define.ts";
import { namespaceRoles } from "./namespace-roles.ts";

export interface Policy {
  readonly clusterRoles: readonly ClusterRole[];
  readonly clusterRoleBindings: readonly ClusterRoleBinding[];
  readonly roles: readonly Role[];
  readonly roleBindings: readonly RoleBinding[];
}

const CONTROLLER = "system:controller:";

/** Each controller's role goes to the service account of its name. */
const controllerBindings = controllerRoles.map(({ metadata }) => {
  const name = metadata?.name ?? "";
  return clusterRoleBinding(name, name, [account(name.slice(CONTROLLER.length))]);
});

export const bootstrapPolicy: Policy = {
  clusterRoles: [...clusterRoles, ...controllerRoles],
  clusterRoleBindings: [...clusterRoleBindings, ...controllerBindings],
  roles: namespaceRoles,
  roleBindings,
};

/** Throws for a role there is not. */
export function bootstrapRules(name: string): NonNullable<ClusterRole["rules"]> {
  const role = bootstrapPolicy.clusterRoles.find(({ metadata }) => metadata?.name === name);
  if (role === undefined) throw new Error(`Cannot find the bootstrap role ${name}`);
  return role.rules ?? [];
}
