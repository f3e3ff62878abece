/** Who has the roles that every server has from the start. */
import type { ClusterRoleBinding } from "../../../../api/rbac/cluster-role-binding/schema.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";
import { account, clusterRoleBinding, group, roleBinding, user } from "./define.ts";

export const clusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding("cluster-admin", "cluster-admin", [group("system:masters")]),
  clusterRoleBinding("system:basic-user", "system:basic-user", [group("system:authenticated")]),
  clusterRoleBinding("system:discovery", "system:discovery", [group("system:authenticated")]),
  clusterRoleBinding("system:kube-controller-manager", "system:kube-controller-manager", [
    user("system:kube-controller-manager"),
  ]),
  clusterRoleBinding("system:kube-dns", "system:kube-dns", [account("kube-dns")]),
  clusterRoleBinding("system:kube-scheduler", "system:kube-scheduler", [user("system:kube-scheduler")]),
  clusterRoleBinding("system:monitoring", "system:monitoring", [group("system:monitoring")]),
  clusterRoleBinding("system:node", "system:node", []),
  clusterRoleBinding("system:node-proxier", "system:node-proxier", [user("system:kube-proxy")]),
  clusterRoleBinding("system:public-info-viewer", "system:public-info-viewer", [
    group("system:authenticated"),
    group("system:unauthenticated"),
  ]),
  clusterRoleBinding("system:service-account-issuer-discovery", "system:service-account-issuer-discovery", [
    group("system:serviceaccounts"),
  ]),
  clusterRoleBinding("system:volume-scheduler", "system:volume-scheduler", [user("system:kube-scheduler")]),
];

export const roleBindings: readonly RoleBinding[] = [
  roleBinding("kube-public", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", [
    account("bootstrap-signer"),
  ]),
  roleBinding(
    "kube-system",
    "system::extension-apiserver-authentication-reader",
    "extension-apiserver-authentication-reader",
    [user("system:kube-controller-manager"), user("system:kube-scheduler")],
  ),
  roleBinding(
    "kube-system",
    "system::leader-locking-kube-controller-manager",
    "system::leader-locking-kube-controller-manager",
    [user("system:kube-controller-manager"), account("kube-controller-manager"), account("leader-election-controller")],
  ),
  roleBinding("kube-system", "system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler", [
    user("system:kube-scheduler"),
    account("kube-scheduler"),
  ]),
  roleBinding("kube-system", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", [
    account("bootstrap-signer"),
  ]),
  roleBinding("kube-system", "system:controller:cloud-provider", "system:controller:cloud-provider", [
    account("cloud-provider"),
  ]),
  roleBinding("kube-system", "system:controller:token-cleaner", "system:controller:token-cleaner", [
    account("token-cleaner"),
  ]),
];
