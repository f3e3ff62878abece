/** Rules that select the requests of webhooks and policies. */
import type { RuleWithOperations } from "../../api/admissionregistration/rules.ts";
import { svcGroup } from "../../api/scheme.ts";
import type { AdmissionAttributes, Operation } from "../chain/attributes.ts";

/** The properties of a request that rules match. `namespace` of a namespace is its own name. */
export interface RuleTarget {
  readonly operation: Operation;
  /** Any alias of the group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly subresource: string;
  readonly namespace: string;
}

/** Aliases of a group match each other. */
export function matchesRule({ operations = [], ...rule }: RuleWithOperations, target: RuleTarget): boolean {
  const { apiGroups = [], apiVersions = [], resources = [], scope = "*" } = rule;
  const { operation, group, version, plural, subresource } = target;
  return (
    includesOrAll(operations, operation) &&
    (apiGroups.includes("*") || apiGroups.some((one) => svcGroup(one) === svcGroup(group))) &&
    includesOrAll(apiVersions, version) &&
    resources.some((resource) => matchesResourceRule(resource, plural, subresource)) &&
    matchesScope(scope, target)
  );
}

function includesOrAll(list: readonly string[], text: string): boolean {
  return list.includes("*") || list.includes(text);
}

/** `pods`, `pods/status`, `pods/*`, `*` (no subresources), `*` with `/status`. */
function matchesResourceRule(rule: string, plural: string, subresource: string): boolean {
  const [resource, part = ""] = rule.split(/\/(.*)/s);
  return (resource === "*" || resource === plural) && (part === "*" || part === subresource);
}

function matchesScope(scope: string, { group, plural, namespace }: RuleTarget): boolean {
  if (scope === "*") return true;
  const isNamespaced = namespace !== "" && !(group === "" && plural === "namespaces");
  return isNamespaced === (scope === "Namespaced");
}

/** The alias of the group that the rule uses, if the rule names the group. */
export function groupAliasIn({ apiGroups = [] }: RuleWithOperations, group: string): string {
  return apiGroups.find((one) => svcGroup(one) === svcGroup(group)) ?? group;
}

const EXEMPT: ReadonlySet<string> = new Set([
  "validatingwebhookconfigurations",
  "mutatingwebhookconfigurations",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "mutatingadmissionpolicies",
  "mutatingadmissionpolicybindings",
]);

/** Webhooks and policies do not apply to their own configurations, so that a broken one can always be removed. */
export function isExemptConfiguration({ kind }: AdmissionAttributes): boolean {
  return kind.group === "admissionregistration.svc.io" && EXEMPT.has(kind.plural);
}
