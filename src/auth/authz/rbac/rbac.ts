import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";
import type { Attributes, Authorization, Authorizer, UserInfo } from "../../user.ts";
import { aggregateErrors, combinedResource } from "../reason.ts";

/** The rules that a binding grants to a user. */
export interface RuleGrant {
  readonly rules: readonly PolicyRule[];
  /** `ClusterRoleBinding "x" of ClusterRole "y" to Group "z"` */
  readonly by: string;
  /** The role that the binding references and that does not exist. */
  readonly missing?: string;
}

/** The source of a user's rules. */
export interface RuleSource {
  /** The user's grants in all namespaces, and those in `namespace` if it is not empty. */
  grantsFor(user: UserInfo, namespace: string): readonly RuleGrant[];
  /**
   * Follows many changes in slices, between which the event loop handles other requests. Undefined when there are none;
   * without it the next `grantsFor` follows them all.
   */
  prepare?(): Promise<void> | undefined;
}

export function rbacAuthorizer(source: RuleSource): Authorizer {
  return {
    authorize(attributes) {
      const pending = source.prepare?.();
      return pending === undefined ? authorize(source, attributes) : pending.then(() => authorize(source, attributes));
    },
    rulesFor(user, namespace) {
      const grants = source.grantsFor(user, namespace);
      const missing = grants.flatMap(({ missing: role }) => (role === undefined ? [] : `${role} not found`));
      const rules = grants.flatMap((grant) => grant.rules);
      // A missing role grants nothing, so the list is complete.
      return { rules, incomplete: false, error: missing.length === 0 ? undefined : aggregateErrors(missing) };
    },
  };
}

function authorize(source: RuleSource, attributes: Attributes): Authorization {
  const missing: string[] = [];
  for (const { rules, by, missing: role } of source.grantsFor(attributes.user, attributes.namespace)) {
    if (role !== undefined) missing.push(`${role} not found`);
    if (rules.some((rule) => ruleAllows(rule, attributes))) {
      return { decision: "allow", reason: `RBAC: allowed by ${by}` };
    }
  }
  return { decision: "no-opinion", reason: missing.length === 0 ? "" : `RBAC: ${aggregateErrors(missing)}` };
}

export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!includesOrAll(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest)
    return (rule.nonResourceURLs ?? []).some((url) => urlMatches(url, attributes.path));
  return groupMatches(rule, attributes) && resourceMatches(rule, attributes) && nameMatches(rule, attributes);
}

function groupMatches({ apiGroups = [] }: PolicyRule, { apiGroup }: Attributes): boolean {
  const requested = svcGroup(apiGroup);
  return apiGroups.some((group) => group === "*" || svcGroup(group) === requested);
}

function resourceMatches({ resources = [] }: PolicyRule, attributes: Attributes): boolean {
  const requested = combinedResource(attributes);
  const anywhere = attributes.subresource === "" ? undefined : `*/${attributes.subresource}`;
  return resources.some((resource) => resource === "*" || resource === requested || resource === anywhere);
}

function nameMatches({ resourceNames = [] }: PolicyRule, { name }: Attributes): boolean {
  return resourceNames.length === 0 || resourceNames.includes(name);
}

function urlMatches(url: string, path: string): boolean {
  if (url === "*" || url === path) return true;
  return url.endsWith("*") && path.startsWith(url.replace(/(?<!\*)\*+$/, ""));
}

function includesOrAll(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}
