/** Rules by which webhooks and policies say which requests concern them. */
import type { RuleWithOperations } from "../../api/admissionregistration/rules.ts";
import { svcGroup } from "../../api/scheme.ts";
import type { Operation, Place } from "../chain/plugin.ts";

/** What a rule looks at. `namespace` is that of the request; of a namespace its own name. */
export interface Concern {
  readonly operation: Operation;
  /** Any spelling. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly subresource: string;
  readonly namespace: string;
}

/** Both spellings of a group are one. */
export function isConcerned({ operations = [], ...rule }: RuleWithOperations, concern: Concern): boolean {
  const { apiGroups = [], apiVersions = [], resources = [], scope = "*" } = rule;
  const { operation, group, version, plural, subresource } = concern;
  return (
    isIn(operations, operation) &&
    (apiGroups.includes("*") || apiGroups.some((one) => svcGroup(one) === svcGroup(group))) &&
    isIn(apiVersions, version) &&
    resources.some((resource) => isResource(resource, plural, subresource)) &&
    isScope(scope, concern)
  );
}

function isIn(list: readonly string[], text: string): boolean {
  return list.includes("*") || list.includes(text);
}

/** `pods`, `pods/status`, `pods/*`, `*` (no subresources), `*` with `/status`. */
function isResource(rule: string, plural: string, subresource: string): boolean {
  const [resource, part = ""] = rule.split(/\/(.*)/s);
  return (resource === "*" || resource === plural) && (part === "*" || part === subresource);
}

function isScope(scope: string, { group, plural, namespace }: Concern): boolean {
  if (scope === "*") return true;
  const isNamespaced = namespace !== "" && !(group === "" && plural === "namespaces");
  return isNamespaced === (scope === "Namespaced");
}

/** The spelling of a group that the rule uses, where it names the group. */
export function spelledBy({ apiGroups = [] }: RuleWithOperations, group: string): string {
  return apiGroups.find((one) => svcGroup(one) === svcGroup(group)) ?? group;
}

const GUARDS: ReadonlySet<string> = new Set([
  "validatingwebhookconfigurations",
  "mutatingwebhookconfigurations",
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "mutatingadmissionpolicies",
  "mutatingadmissionpolicybindings",
]);

/** Whoever guards the cluster's doors cannot lock them to those who would take it away again. */
export function isGuard({ kind }: Place): boolean {
  return kind.group === "admissionregistration.svc.io" && GUARDS.has(kind.plural);
}
