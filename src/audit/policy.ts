/** The audit policy (`--audit-policy-file`): which requests are recorded, and how much of them. */
import { svcGroup } from "../api/scheme.ts";
import { isInGroup, type UserInfo } from "../auth/user.ts";

/** In increasing order. */
export const LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type Level = (typeof LEVELS)[number];

export const STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;
export type Stage = (typeof STAGES)[number];

export interface AuditPolicy {
  readonly rules: readonly PolicyRule[];
  readonly omitStages: readonly Stage[];
  readonly omitManagedFields: boolean;
}

/** Empty lists match everything. */
export interface PolicyRule {
  readonly level: Level;
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly GroupResources[];
  /** The empty string matches requests without a namespace. */
  readonly namespaces: readonly string[];
  readonly nonResourceURLs: readonly string[];
  readonly omitStages: readonly Stage[];
  /** Undefined: as the policy says. */
  readonly omitManagedFields: boolean | undefined;
}

export interface GroupResources {
  readonly group: string;
  /** `pods`, `pods/status`, `pods/*`, or `*`; a star before the slash stands for every resource. */
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}

/** What the rules compare. */
export interface AuditAttributes {
  /** Undefined: the request is not authenticated. */
  readonly user: Pick<UserInfo, "name" | "groups"> | undefined;
  readonly verb: string;
  readonly isResourceRequest: boolean;
  readonly namespace: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly path: string;
}

export interface AuditDecision {
  readonly level: Level;
  readonly omitStages: ReadonlySet<Stage>;
  readonly omitManagedFields: boolean;
}

const UNMATCHED: AuditDecision = { level: "None", omitStages: new Set(STAGES), omitManagedFields: false };

/** Returns a function that decides by the first rule that matches; without one, nothing is recorded. */
export function createPolicyEvaluator(policy: AuditPolicy): (attributes: AuditAttributes) => AuditDecision {
  const rules = policy.rules.map((rule) => ({
    rule: { ...rule, resources: rule.resources.map((each) => ({ ...each, group: svcGroup(each.group) })) },
    decision: {
      level: rule.level,
      omitStages: new Set([...policy.omitStages, ...rule.omitStages]),
      omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields,
    },
  }));
  return (attributes) => rules.find(({ rule }) => matches(rule, attributes))?.decision ?? UNMATCHED;
}

function matches(rule: PolicyRule, attributes: AuditAttributes): boolean {
  const { user, verb } = attributes;
  if (rule.users.length > 0 && (user === undefined || !rule.users.includes(user.name))) return false;
  if (rule.userGroups.length > 0 && (user === undefined || !rule.userGroups.some((group) => isInGroup(user, group))))
    return false;
  if (rule.verbs.length > 0 && !rule.verbs.includes(verb)) return false;
  if (rule.namespaces.length > 0 || rule.resources.length > 0) return matchesResource(rule, attributes);
  if (rule.nonResourceURLs.length === 0) return true;
  return !attributes.isResourceRequest && rule.nonResourceURLs.some((url) => matchesPath(url, attributes.path));
}

function matchesPath(url: string, path: string): boolean {
  return url === path || (url.endsWith("*") && path.startsWith(url.slice(0, -1)));
}

function matchesResource({ namespaces, resources }: PolicyRule, attributes: AuditAttributes): boolean {
  if (!attributes.isResourceRequest) return false;
  if (namespaces.length > 0 && !namespaces.includes(attributes.namespace)) return false;
  const group = svcGroup(attributes.group);
  return resources.length === 0 || resources.some((each) => each.group === group && includesResource(each, attributes));
}

function includesResource(each: GroupResources, { resource, subresource, name }: AuditAttributes): boolean {
  if (each.resources.length === 0) return true;
  if (each.resourceNames.length > 0 && !each.resourceNames.includes(name)) return false;
  const combined = subresource === "" ? resource : `${resource}/${subresource}`;
  return each.resources.some(
    (text) =>
      text === combined ||
      text === "*" ||
      text === `${resource}/*` ||
      (subresource !== "" && text === `*/${subresource}`),
  );
}
