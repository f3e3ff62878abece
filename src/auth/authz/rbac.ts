import { svcGroup } from "../../api/scheme.ts";
import type { Attributes, Authorizer, PolicyRule, UserInfo } from "../user.ts";
import { combinedResource } from "./reason.ts";

export interface Subject {
  readonly kind: "User" | "Group" | "ServiceAccount";
  readonly name: string;
  /** Of a service account. */
  readonly namespace?: string;
}

/** Rules that a binding gives to a user. */
export interface Grant {
  readonly rules: readonly PolicyRule[];
  /** `ClusterRoleBinding "x" of ClusterRole "y" to Group "z"` */
  readonly by: string;
}

/** Where rules come from: the bootstrap policy, later the roles and bindings that are stored. */
export interface RuleSource {
  /** What the user was granted in every namespace, and in `namespace` when it is not empty. */
  grantsFor(user: UserInfo, namespace: string): Iterable<Grant>;
}

export function rbacAuthorizer(source: RuleSource): Authorizer {
  return {
    async authorize(attributes) {
      for (const { rules, by } of source.grantsFor(attributes.user, attributes.namespace)) {
        if (rules.some((rule) => ruleAllows(rule, attributes))) {
          return { decision: "allow", reason: `RBAC: allowed by ${by}` };
        }
      }
      return { decision: "no-opinion", reason: "" };
    },
    rulesFor(user, namespace) {
      return { rules: [...source.grantsFor(user, namespace)].flatMap((grant) => grant.rules), incomplete: false };
    },
  };
}

export function ruleAllows(rule: PolicyRule, attributes: Attributes): boolean {
  if (!has(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest)
    return (rule.nonResourceURLs ?? []).some((url) => urlMatches(url, attributes.path));
  return groupMatches(rule, attributes) && resourceMatches(rule, attributes) && nameMatches(rule, attributes);
}

/** The subject of a binding that the user is, or undefined. */
export function subjectOf(user: UserInfo, subjects: readonly Subject[]): Subject | undefined {
  return subjects.find((subject) => is(user, subject));
}

function is(user: UserInfo, subject: Subject): boolean {
  switch (subject.kind) {
    case "User":
      return user.name === subject.name;
    case "Group":
      return user.groups.includes(subject.name);
    case "ServiceAccount":
      return user.name === `system:serviceaccount:${subject.namespace ?? ""}:${subject.name}`;
  }
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
  return url.endsWith("*") && path.startsWith(url.replace(/\*+$/, ""));
}

function has(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}
