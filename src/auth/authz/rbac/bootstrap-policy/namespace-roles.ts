/** The bootstrap roles in namespaces. */
import type { Role } from "../../../../api/rbac/role/schema.ts";
import { allowResources, READ, REPORT, role } from "./define.ts";

export const namespaceRoles: readonly Role[] = [
  role("kube-public", "system:controller:bootstrap-signer", [
    allowResources("core", "configmaps", READ),
    allowResources("core", "configmaps", "update", "cluster-info"),
    allowResources("core events.svc.io", "events", REPORT),
  ]),
  role("kube-system", "extension-apiserver-authentication-reader", [
    allowResources("core", "configmaps", READ, "extension-apiserver-authentication"),
  ]),
  role("kube-system", "system::leader-locking-kube-controller-manager", [
    allowResources("core", "configmaps", "watch"),
    allowResources("core", "configmaps", "get update", "kube-controller-manager"),
    allowResources("coordination.svc.io", "leases", "create get list update watch"),
    allowResources("coordination.svc.io", "leasecandidates", "create get list update watch"),
  ]),
  role("kube-system", "system::leader-locking-kube-scheduler", [
    allowResources("core", "configmaps", "watch"),
    allowResources("core", "configmaps", "get update", "kube-scheduler"),
    allowResources("coordination.svc.io", "leases", "create get list update watch"),
    allowResources("coordination.svc.io", "leasecandidates", "create get list update watch"),
  ]),
  role("kube-system", "system:controller:bootstrap-signer", [allowResources("core", "secrets", READ)]),
  role("kube-system", "system:controller:cloud-provider", [
    allowResources("core", "configmaps", "create get list watch"),
  ]),
  role("kube-system", "system:controller:token-cleaner", [
    allowResources("core", "secrets", "delete get list watch"),
    allowResources("core events.svc.io", "events", REPORT),
  ]),
];
