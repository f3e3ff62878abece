/** The bootstrap cluster role bindings and role bindings. */
import type { ClusterRoleBinding } from "../../../../api/rbac/cluster-role-binding/schema.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";
import { clusterRoleBinding, groupSubject, roleBinding, serviceAccount, userSubject } from "./define.ts";

export const clusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding("cluster-admin", "cluster-admin", [groupSubject("system:masters")]),
  clusterRoleBinding("system:basic-user", "system:basic-user", [groupSubject("system:authenticated")]),
  clusterRoleBinding("system:discovery", "system:discovery", [groupSubject("system:authenticated")]),
  clusterRoleBinding("system:kube-controller-manager", "system:kube-controller-manager", [
    userSubject("system:kube-controller-manager"),
  ]),
  clusterRoleBinding("system:kube-dns", "system:kube-dns", [serviceAccount("kube-dns")]),
  clusterRoleBinding("system:kube-scheduler", "system:kube-scheduler", [userSubject("system:kube-scheduler")]),
  clusterRoleBinding("system:monitoring", "system:monitoring", [groupSubject("system:monitoring")]),
  clusterRoleBinding("system:node", "system:node", []),
  clusterRoleBinding("system:node-proxier", "system:node-proxier", [userSubject("system:kube-proxy")]),
  clusterRoleBinding("system:public-info-viewer", "system:public-info-viewer", [
    groupSubject("system:authenticated"),
    groupSubject("system:unauthenticated"),
  ]),
  clusterRoleBinding("system:service-account-issuer-discovery", "system:service-account-issuer-discovery", [
    groupSubject("system:serviceaccounts"),
  ]),
  clusterRoleBinding("system:volume-scheduler", "system:volume-scheduler", [userSubject("system:kube-scheduler")]),
];

export const roleBindings: readonly RoleBinding[] = [
  roleBinding("kube-public", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", [
    serviceAccount("bootstrap-signer"),
  ]),
  roleBinding(
    "kube-system",
    "system::extension-apiserver-authentication-reader",
    "extension-apiserver-authentication-reader",
    [userSubject("system:kube-controller-manager"), userSubject("system:kube-scheduler")],
  ),
  roleBinding(
    "kube-system",
    "system::leader-locking-kube-controller-manager",
    "system::leader-locking-kube-controller-manager",
    [
      userSubject("system:kube-controller-manager"),
      serviceAccount("kube-controller-manager"),
      serviceAccount("leader-election-controller"),
    ],
  ),
  roleBinding("kube-system", "system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler", [
    userSubject("system:kube-scheduler"),
    serviceAccount("kube-scheduler"),
  ]),
  roleBinding("kube-system", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer", [
    serviceAccount("bootstrap-signer"),
  ]),
  roleBinding("kube-system", "system:controller:cloud-provider", "system:controller:cloud-provider", [
    serviceAccount("cloud-provider"),
  ]),
  roleBinding("kube-system", "system:controller:token-cleaner", "system:controller:token-cleaner", [
    serviceAccount("token-cleaner"),
  ]),
];
