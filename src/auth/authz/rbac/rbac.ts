import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";
import type { Attributes, Authorizer, UserInfo } from "../../user.ts";
import { aggregate, combinedResource } from "../reason.ts";

/** Rules that a binding gives to a user. */
export interface Grant {
  readonly rules: readonly PolicyRule[];
  /** `ClusterRoleBinding "x" of ClusterRole "y" to Group "z"` */
  readonly by: string;
  /** What the binding refers to, and there is not. */
  readonly missing?: string;
}

/** Where rules come from. */
export interface RuleSource {
  /** What the user was granted in every namespace, and in `namespace` when it is not empty. */
  grantsFor(user: UserInfo, namespace: string): Iterable<Grant>;
}

export function rbacAuthorizer(source: RuleSource): Authorizer {
  return {
    async authorize(attributes) {
      const missing: string[] = [];
      for (const { rules, by, missing: role } of source.grantsFor(attributes.user, attributes.namespace)) {
        if (role !== undefined) missing.push(`${role} not found`);
        if (rules.some((rule) => ruleAllows(rule, attributes))) {
          return { decision: "allow", reason: `RBAC: allowed by ${by}` };
        }
      }
      return { decision: "no-opinion", reason: missing.length === 0 ? "" : `RBAC: ${aggregate(missing)}` };
    },
    rulesFor(user, namespace) {
      const grants = [...source.grantsFor(user, namespace)];
      const missing = grants.flatMap(({ missing: role }) => (role === undefined ? [] : `${role} not found`));
      const rules = grants.flatMap((grant) => grant.rules);
      // A role that is not there grants nothing: these are all the rules there are.
      return { rules, incomplete: false, error: missing.length === 0 ? undefined : aggregate(missing) };
    },
  };
}

export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!has(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest)
    return (rule.nonResourceURLs ?? []).some((url) => urlMatches(url, attributes.path));
  return groupMatches(rule, attributes) && resourceMatches(rule, attributes) && nameMatches(rule, attributes);
}

function groupMatches({ apiGroups = [] }: PolicyRule, { apiGroup }: Attributes): boolean {
  const wanted = svcGroup(apiGroup);
  return apiGroups.some((group) => group === "*" || svcGroup(group) === wanted);
}

function resourceMatches({ resources = [] }: PolicyRule, attributes: Attributes): boolean {
  const wanted = combinedResource(attributes);
  const anywhere = attributes.subresource === "" ? undefined : `*/${attributes.subresource}`;
  return resources.some((resource) => resource === "*" || resource === wanted || resource === anywhere);
}

function nameMatches({ resourceNames = [] }: PolicyRule, { name }: Attributes): boolean {
  return resourceNames.length === 0 || resourceNames.includes(name);
}

function urlMatches(url: string, path: string): boolean {
  if (url === "*" || url === path) return true;
  return url.endsWith("*") && path.startsWith(url.replace(/(?<!\*)\*+$/, ""));
}

function has(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}
