/**
 * Nobody may give what they do not have: who writes a role must be allowed all that it allows, or may `escalate`; who
 * binds one likewise, or may `bind`.
 */
import type { Kind } from "../api/kind.ts";
import type { ClusterRole } from "../api/rbac/cluster-role.ts";
import { clusterRoleBindingKind } from "../api/rbac/cluster-role-binding-kind.ts";
import { clusterRoleKind } from "../api/rbac/cluster-role-kind.ts";
import type { RoleBinding } from "../api/rbac/role-binding.ts";
import { roleBindingKind } from "../api/rbac/role-binding-kind.ts";
import { roleKind } from "../api/rbac/role-kind.ts";
import type { PolicyRule } from "../api/rbac/rules.ts";
import { forbidden } from "../api/status.ts";
import { uncovered } from "../auth/authz/covers.ts";
import type { Authorizer, UserInfo } from "../auth/user.ts";
import { get } from "../registry/get.ts";
import type { Registries } from "../registry/registries.ts";
import type { Confirm, Scope } from "../registry/registry.ts";
import { deepEqual } from "../schema/equal.ts";

/** What has the last word on writes of the kind; undefined for kinds that grant nothing. */
export function escalationCheck(authorizer: Authorizer, registries: Registries): (kind: Kind) => Confirm | undefined {
  const checks = new Map<unknown, Confirm>([
    [clusterRoleKind, roleCheck(authorizer, clusterRoleKind.plural)],
    [roleKind, roleCheck(authorizer, roleKind.plural)],
    [clusterRoleBindingKind, bindingCheck(authorizer, registries, clusterRoleBindingKind.plural)],
    [roleBindingKind, bindingCheck(authorizer, registries, roleBindingKind.plural)],
  ]);
  return (kind) => checks.get(kind);
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

function roleCheck(authorizer: Authorizer, resource: string): Confirm {
  return async (scope, next, previous) => {
    const { rules = [], aggregationRule } = next as ClusterRole;
    const before = previous as ClusterRole | undefined;
    const gathers = aggregationRule !== undefined && !deepEqual(aggregationRule, before?.aggregationRule);
    if (before !== undefined && deepEqual(rules, before.rules ?? []) && !gathers) return;
    const name = next.metadata?.name ?? "";
    if (await may(authorizer, scope, "escalate", resource, name)) return;
    const owned = ownedBy(authorizer, scope);
    if (gathers && uncovered(owned, EVERYTHING).length > 0) {
      throw forbidden(
        { group: scope.group, resource, name },
        "must have cluster-admin privileges to use an aggregationRule",
      );
    }
    refuseMore(scope, resource, name, uncovered(owned, rules));
  };
}

function bindingCheck(authorizer: Authorizer, registries: Registries, resource: string): Confirm {
  return async (scope, next, previous) => {
    const { roleRef, subjects } = next as RoleBinding;
    const before = previous as RoleBinding | undefined;
    if (before !== undefined && deepEqual(roleRef, before.roleRef) && deepEqual(subjects, before.subjects)) return;
    const isLocal = roleRef.kind === "Role";
    const kind = isLocal ? roleKind : clusterRoleKind;
    if (await may(authorizer, scope, "bind", kind.plural, roleRef.name)) return;
    const at = { ...scope, namespace: isLocal ? scope.namespace : "" };
    const { object } = isLocal
      ? await get(registries.of(roleKind), at, roleRef.name)
      : await get(registries.of(clusterRoleKind), at, roleRef.name);
    refuseMore(scope, resource, next.metadata?.name ?? "", uncovered(ownedBy(authorizer, scope), object.rules ?? []));
  };
}

async function may(
  authorizer: Authorizer,
  { user, namespace, group }: Scope,
  verb: string,
  resource: string,
  name: string,
): Promise<boolean> {
  const at = { user, verb, namespace, apiGroup: group, apiVersion: "v1", resource, subresource: "", name, path: "" };
  return (await authorizer.authorize({ ...at, isResourceRequest: true })).decision === "allow";
}

function ownedBy(authorizer: Authorizer, { user, namespace }: Scope): readonly PolicyRule[] {
  return authorizer.rulesFor?.(user, namespace).rules ?? [];
}

function refuseMore({ user, group }: Scope, resource: string, name: string, more: readonly PolicyRule[]): void {
  if (more.length === 0) return;
  const what = more.map(ruleText).sort().join("\n");
  const why = `${described(user)} is attempting to grant RBAC permissions not currently held:\n${what}`;
  throw forbidden({ group, resource, name }, why);
}

function described({ name, groups }: UserInfo): string {
  return `user ${JSON.stringify(name)} (groups=${JSON.stringify(groups)})`;
}

function ruleText(rule: PolicyRule): string {
  const members = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["ResourceNames", rule.resourceNames],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["Verbs", rule.verbs],
  ] as const;
  const known = members.filter(([, values]) => (values ?? []).length > 0);
  return `{${known.map(([member, values]) => `${member}:${JSON.stringify(values)}`).join(", ")}}`;
}
