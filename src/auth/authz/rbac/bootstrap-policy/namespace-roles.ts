/** Roles within the namespaces that every server has from the start. */
import type { Role } from "../../../../api/rbac/role/schema.ts";
import { allow, READ, REPORT, role } from "./define.ts";

export const namespaceRoles: readonly Role[] = [
  role("kube-public", "system:controller:bootstrap-signer", [
    allow("core", "configmaps", READ),
    allow("core", "configmaps", "update", "cluster-info"),
    allow("core events.svc.io", "events", REPORT),
  ]),
  role("kube-system", "extension-apiserver-authentication-reader", [
    allow("core", "configmaps", READ, "extension-apiserver-authentication"),
  ]),
  role("kube-system", "system::leader-locking-kube-controller-manager", [
    allow("core", "configmaps", "watch"),
    allow("core", "configmaps", "get update", "kube-controller-manager"),
    allow("coordination.svc.io", "leases", "create get list update watch"),
    allow("coordination.svc.io", "leasecandidates", "create get list update watch"),
  ]),
  role("kube-system", "system::leader-locking-kube-scheduler", [
    allow("core", "configmaps", "watch"),
    allow("core", "configmaps", "get update", "kube-scheduler"),
    allow("coordination.svc.io", "leases", "create get list update watch"),
    allow("coordination.svc.io", "leasecandidates", "create get list update watch"),
  ]),
  role("kube-system", "system:controller:bootstrap-signer", [allow("core", "secrets", READ)]),
  role("kube-system", "system:controller:cloud-provider", [allow("core", "configmaps", "create get list watch")]),
  role("kube-system", "system:controller:token-cleaner", [
    allow("core", "secrets", "delete get list watch"),
    allow("core events.svc.io", "events", REPORT),
  ]),
];
