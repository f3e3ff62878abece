/** `--authorization-mode=ABAC`: allows requests that match one of the policies in the file. */
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { svcGroup } from "../../../api/scheme.ts";
import { type Attributes, type Authorizer, isInGroup, type UserInfo } from "../../user.ts";
import type { AbacPolicy } from "./policy-file.ts";

const READ_VERBS: ReadonlySet<string> = new Set(["get", "list", "watch"]);

export function abacAuthorizer(policies: readonly AbacPolicy[]): Authorizer {
  return {
    authorize: (attributes) =>
      policies.some((policy) => matchesRequest(policy, attributes))
        ? { decision: "allow", reason: "" }
        : { decision: "no-opinion", reason: "No policy matched." },
    rulesFor: (user, namespace) => ({
      rules: policies
        .filter((policy) => appliesToUser(policy, user) && matches(policy.namespace, namespace))
        .flatMap(toPolicyRules),
      incomplete: false,
    }),
  };
}

function matchesRequest(policy: AbacPolicy, attributes: Attributes): boolean {
  if (!appliesToUser(policy, attributes.user)) return false;
  if (policy.readonly && !READ_VERBS.has(attributes.verb)) return false;
  return attributes.isResourceRequest ? matchesResource(policy, attributes) : matchesPath(policy, attributes.path);
}

/** A policy must name a user or a group; if it names both, both must match. */
function appliesToUser({ user, group }: AbacPolicy, candidate: UserInfo): boolean {
  if (user === "" && group === "") return false;
  return (user === "" || user === candidate.name) && (group === "" || isInGroup(candidate, group));
}

/** A policy for a resource includes its subresources. */
function matchesResource({ namespace, resource, apiGroup }: AbacPolicy, attributes: Attributes): boolean {
  return (
    matches(namespace, attributes.namespace) &&
    matches(resource, attributes.resource) &&
    (apiGroup === "*" || svcGroup(apiGroup) === svcGroup(attributes.apiGroup))
  );
}

function matchesPath({ nonResourcePath }: AbacPolicy, path: string): boolean {
  if (nonResourcePath === "*" || nonResourcePath === path) return true;
  return nonResourcePath.endsWith("*") && path.startsWith(nonResourcePath.replace(/(?<!\*)\*+$/, ""));
}

function matches(pattern: string, value: string): boolean {
  return pattern === "*" || pattern === value;
}

function toPolicyRules({ readonly, apiGroup, resource, nonResourcePath }: AbacPolicy): readonly PolicyRule[] {
  const verbs = readonly ? [...READ_VERBS] : ["*"];
  return [
    ...(resource === "" ? [] : [{ verbs, apiGroups: [apiGroup], resources: [resource] }]),
    ...(nonResourcePath === "" ? [] : [{ verbs, nonResourceURLs: [nonResourcePath] }]),
  ];
}
