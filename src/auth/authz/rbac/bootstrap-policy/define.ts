/** Helpers for writing the bootstrap policy. Lists are strings with items separated by white space. */
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import type { ClusterRoleBinding } from "../../../../api/rbac/cluster-role-binding/schema.ts";
import type { PolicyRule, Subject } from "../../../../api/rbac/policy-rule.ts";
import type { Role } from "../../../../api/rbac/role/schema.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";

export const GROUP = "rbac.authorization.svc.io";
export const READ = "get list watch";
export const WRITE = "create delete deletecollection patch update";
export const ALL = "create delete deletecollection get list patch update watch";
export const REPORT = "create patch update";

/** Kubernetes' own labels and annotations, since tools look for them. */
const labels = { "kubernetes.io/bootstrapping": "rbac-defaults" };
const annotations = { "rbac.authorization.kubernetes.io/autoupdate": "true" };
/** Both aliases of the group, since manifests for Kubernetes use the first. */
const AGGREGATE_TO = ["rbac.authorization.k8s.io/aggregate-to-", `${GROUP}/aggregate-to-`] as const;

const words = (text: string): readonly string[] => text.split(/\s+/);

/** `core` is the core group. */
export function allowResources(groups: string, resources: string, verbs: string, names?: string): PolicyRule {
  const apiGroups = words(groups).map((group) => (group === "core" ? "" : group));
  const rule = { verbs: words(verbs), apiGroups, resources: words(resources) };
  return names === undefined ? rule : { ...rule, resourceNames: words(names) };
}

export function allowPaths(paths: string, verbs = "get"): PolicyRule {
  return { verbs: words(verbs), nonResourceURLs: words(paths) };
}

/** `into`: the roles that aggregate these rules. */
export function clusterRole(name: string, rules: readonly PolicyRule[], into?: string): ClusterRole {
  return { metadata: metadataOf(name, into), rules };
}

/** A role that aggregates the rules of all roles with the label for `from`. */
export function aggregate(name: string, from: string, into?: string): ClusterRole {
  const clusterRoleSelectors = AGGREGATE_TO.map((prefix) => ({ matchLabels: { [`${prefix}${from}`]: "true" } }));
  return { metadata: metadataOf(name, into), rules: [], aggregationRule: { clusterRoleSelectors } };
}

export function role(namespace: string, name: string, rules: readonly PolicyRule[]): Role {
  return { metadata: { ...metadataOf(name), namespace }, rules };
}

export function clusterRoleBinding(name: string, to: string, subjects: readonly Subject[]): ClusterRoleBinding {
  return { metadata: metadataOf(name), subjects, roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: to } };
}

export function roleBinding(namespace: string, name: string, to: string, subjects: readonly Subject[]): RoleBinding {
  const metadata = { ...metadataOf(name), namespace };
  return { metadata, subjects, roleRef: { apiGroup: GROUP, kind: "Role", name: to } };
}

export function userSubject(name: string): Subject {
  return { kind: "User", apiGroup: GROUP, name };
}

export function groupSubject(name: string): Subject {
  return { kind: "Group", apiGroup: GROUP, name };
}

export function serviceAccount(name: string, namespace = "kube-system"): Subject {
  return { kind: "ServiceAccount", name, namespace };
}

function metadataOf(name: string, into?: string) {
  const aggregation = Object.fromEntries(
    (into === undefined ? [] : words(into)).map((to) => [`${AGGREGATE_TO[0]}${to}`, "true"]),
  );
  return { name, labels: { ...labels, ...aggregation }, annotations };
}
