/**
 * RBAC escalation prevention: a user may write a role only with all permissions of the role, or with the verb
 * `escalate`, and may write a binding only with all permissions of its role, or with the verb `bind`.
 */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import type { PolicyRule } from "../../api/rbac/policy-rule.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import type { RoleBinding } from "../../api/rbac/role-binding/schema.ts";
import { forbidden, isNotFound, notFound, StatusError } from "../../api/status.ts";
import {
  compactRules,
  countCombinations,
  findUncovered,
  findUncoveredInSteps,
} from "../../auth/authz/rbac/rules-cover.ts";
import { type Authorizer, MASTERS, type UserInfo, type UserRules } from "../../auth/user.ts";
import { get } from "../../registry/get.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import type { EscalationCheck } from "../../registry/write/request.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { runInSlices } from "../../std/async/steps.ts";

/** `named` is the object name in the request's path: empty for POST, whose name is in the body. */
type EscalationCheckFactory = (named: string) => EscalationCheck;

/** The check of writes of a kind; undefined for kinds other than RBAC's. */
export function createEscalationCheck(
  authorizer: Authorizer,
  registries: Registries,
): (kind: Kind, named: string) => EscalationCheck | undefined {
  const binding = (plural: string): EscalationCheckFactory => {
    const check = bindingCheck(authorizer, registries, plural);
    return () => check;
  };
  const checks = new Map<unknown, EscalationCheckFactory>([
    [clusterRoleKind, roleCheck(authorizer, clusterRoleKind.plural)],
    [roleKind, roleCheck(authorizer, roleKind.plural)],
    [clusterRoleBindingKind, binding(clusterRoleBindingKind.plural)],
    [roleBindingKind, binding(roleBindingKind.plural)],
  ]);
  return (kind, named) => checks.get(kind)?.(named);
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

function roleCheck(authorizer: Authorizer, resource: string): EscalationCheckFactory {
  return (named) => async (scope, next, previous) => {
    if (isGarbageCollectorChange(next, previous)) return;
    // A rule with resourceNames does not allow POST, which has no name in its path.
    if (await isAuthorized(authorizer, scope, "escalate", resource, named)) return;
    const { rules = [], aggregationRule } = next as ClusterRole;
    const name = next.metadata?.name ?? "";
    await checkCovered(authorizer, scope, { resource, name }, rules);
    const isAggregated = [aggregationRule, (previous as ClusterRole | undefined)?.aggregationRule].some(
      (rule) => (rule?.clusterRoleSelectors ?? []).length > 0,
    );
    if (isAggregated && findUncovered(rulesOfUser(authorizer, scope).rules, EVERYTHING).length > 0) {
      throw forbidden(
        { group: scope.group, resource, name },
        "must have cluster-admin privileges to use the aggregationRule",
      );
    }
  };
}

const REFERENCED: ReadonlySet<string> = new Set(["ClusterRole", "Role"]);

function bindingCheck(authorizer: Authorizer, registries: Registries, resource: string): EscalationCheck {
  return async (scope, next, previous) => {
    if (isGarbageCollectorChange(next, previous)) return;
    const { roleRef } = next as RoleBinding;
    if (!REFERENCED.has(roleRef.kind)) {
      // For others the validation of the binding reports the kind.
      if (scope.user.groups.includes(MASTERS)) return;
      throw new StatusError(500, "", `unsupported role reference kind: ${goQuote(roleRef.kind)}`);
    }
    const isLocal = roleRef.kind === "Role";
    const kind = isLocal ? roleKind : clusterRoleKind;
    if (await isAuthorized(authorizer, scope, "bind", kind.plural, roleRef.name)) return;
    const at = { ...scope, namespace: isLocal ? scope.namespace : "" };
    const role = isLocal
      ? get(registries.of(roleKind), at, roleRef.name)
      : get(registries.of(clusterRoleKind), at, roleRef.name);
    const { object } = await role.catch((error: unknown) => {
      // As in Kubernetes, the message names the resource of the request.
      throw isNotFound(error) ? notFound({ group: scope.group, resource, name: roleRef.name }) : error;
    });
    await checkCovered(authorizer, scope, { resource, name: next.metadata?.name ?? "" }, object.rules ?? []);
  };
}

/**
 * Whether only fields of the garbage collector change. All other changes are checked, also labels, which select roles
 * for aggregation.
 */
function isGarbageCollectorChange(next: ApiObject, previous: ApiObject | undefined): boolean {
  return previous !== undefined && deepEqual(withoutOwners(next), withoutOwners(previous));
}

function withoutOwners({ kind: _, apiVersion: _version, metadata = {}, ...rest }: ApiObject): unknown {
  const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _managed, ...otherMetadata } = metadata;
  return { ...rest, metadata: otherMetadata };
}

async function isAuthorized(
  authorizer: Authorizer,
  { user, namespace, group }: Scope,
  verb: string,
  resource: string,
  name: string,
): Promise<boolean> {
  const at = { user, verb, namespace, apiGroup: group, apiVersion: "*", resource, subresource: "", name, path: "" };
  return (await authorizer.authorize({ ...at, isResourceRequest: true })).decision === "allow";
}

function rulesOfUser(authorizer: Authorizer, { user, namespace }: Scope): UserRules {
  return authorizer.rulesFor?.(user, namespace) ?? { rules: [], incomplete: true };
}

/** Bounds the comparison of rules with those of the user: a short role can contain billions of combinations. */
const COMBINATIONS_MAX = 20_000;

async function checkCovered(
  authorizer: Authorizer,
  scope: Scope,
  { resource, name }: { readonly resource: string; readonly name: string },
  rules: readonly PolicyRule[],
): Promise<void> {
  const refuse = (why: string): Error => forbidden({ group: scope.group, resource, name }, why);
  if (countCombinations(rules) > COMBINATIONS_MAX) {
    const most = `more than ${COMBINATIONS_MAX} combinations of verbs, groups, resources and names`;
    throw refuse(`${most} are not compared with what ${described(scope.user)} may: write several roles`);
  }
  const { rules: owned, error } = rulesOfUser(authorizer, scope);
  const more = compactRules(await runInSlices(findUncoveredInSteps(owned, rules)));
  if (more.length === 0) return;
  const what = [...new Set(more.map(ruleText))].sort().join("\n");
  const unknown = error === undefined ? "" : `; resolution errors: [${error}]`;
  throw refuse(
    `${described(scope.user)} is attempting to grant RBAC permissions not currently held:\n${what}${unknown}`,
  );
}

function described({ name, groups }: UserInfo): string {
  return `user ${goQuote(name)} (groups=${listText(groups)})`;
}

function ruleText(rule: PolicyRule): string {
  const members = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ] as const;
  const known = members.filter(([, values]) => (values ?? []).length > 0);
  return `{${known.map(([member, values]) => `${member}:${listText(values ?? [])}`).join(", ")}}`;
}

function listText(values: readonly string[]): string {
  return `[${values.map(goQuote).join(" ")}]`;
}
