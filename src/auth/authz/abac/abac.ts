/** `--authorization-mode=ABAC`: a request is allowed when one policy of a file allows it. */
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";
import type { Attributes, Authorizer, UserInfo } from "../../user.ts";
import type { AbacPolicy } from "./policy-file.ts";

const READING: ReadonlySet<string> = new Set(["get", "list", "watch"]);

export function abacAuthorizer(policies: readonly AbacPolicy[]): Authorizer {
  return {
    authorize: async (attributes) =>
      policies.some((policy) => allows(policy, attributes))
        ? { decision: "allow", reason: "" }
        : { decision: "no-opinion", reason: "No policy matched." },
    rulesFor: (user, namespace) => ({
      rules: policies.filter((policy) => isFor(policy, user) && matches(policy.namespace, namespace)).flatMap(rulesOf),
      incomplete: false,
    }),
  };
}

function allows(policy: AbacPolicy, attributes: Attributes): boolean {
  if (!isFor(policy, attributes.user)) return false;
  if (policy.readonly && !READING.has(attributes.verb)) return false;
  return attributes.isResourceRequest ? coversResource(policy, attributes) : coversPath(policy, attributes.path);
}

/** Who is named must be the user, and the group must be one of theirs; one of the two must be named. */
function isFor({ user, group }: AbacPolicy, { name, groups }: UserInfo): boolean {
  if (user === "" && group === "") return false;
  return (user === "" || user === name) && (group === "" || groups.includes(group));
}

/** Subresources go with their resource. */
function coversResource({ namespace, resource, apiGroup }: AbacPolicy, attributes: Attributes): boolean {
  return (
    matches(namespace, attributes.namespace) &&
    matches(resource, attributes.resource) &&
    (apiGroup === "*" || svcGroup(apiGroup) === svcGroup(attributes.apiGroup))
  );
}

function coversPath({ nonResourcePath }: AbacPolicy, path: string): boolean {
  if (nonResourcePath === "*" || nonResourcePath === path) return true;
  return nonResourcePath.endsWith("*") && path.startsWith(nonResourcePath.replace(/(?<!\*)\*+$/, ""));
}

function matches(pattern: string, value: string): boolean {
  return pattern === "*" || pattern === value;
}

function rulesOf({ readonly, apiGroup, resource, nonResourcePath }: AbacPolicy): readonly PolicyRule[] {
  const verbs = readonly ? [...READING] : ["*"];
  return [
    ...(resource === "" ? [] : [{ verbs, apiGroups: [apiGroup], resources: [resource] }]),
    ...(nonResourcePath === "" ? [] : [{ verbs, nonResourceURLs: [nonResourcePath] }]),
  ];
}
