import {
  documentedEnum,
  inline,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { labelSelector } from "../meta/label-selector.ts";

export const rule = object("admissionregistration/v1.Rule", {
  apiGroups: optional(1, list(string)),
  apiVersions: optional(2, list(string)),
  resources: optional(3, list(string)),
  scope: pointer(4, named("v1.ScopeType", documentedEnum("Cluster", "Namespaced", "*"))),
});
export type Rule = Infer<typeof rule>;

export const ruleWithOperations = object("admissionregistration/v1.RuleWithOperations", {
  operations: optional(
    1,
    list(named("v1.OperationType", documentedEnum("*", "CREATE", "UPDATE", "DELETE", "CONNECT"))),
  ),
  rule: inline(2, rule),
});
export type RuleWithOperations = Infer<typeof ruleWithOperations>;

export const matchCondition = object("admissionregistration/v1.MatchCondition", {
  name: required(1, string),
  expression: required(2, string),
});
export type MatchCondition = Infer<typeof matchCondition>;

export const namedRuleWithOperations = object(
  "admissionregistration/v1.NamedRuleWithOperations",
  {
    resourceNames: optional(1, list(string)),
    ruleWithOperations: inline(2, ruleWithOperations),
  },
  { atomic: true },
);
export type NamedRuleWithOperations = Infer<typeof namedRuleWithOperations>;

export const matchResources = object(
  "admissionregistration/v1.MatchResources",
  {
    namespaceSelector: pointer(1, labelSelector),
    objectSelector: pointer(2, labelSelector),
    resourceRules: optional(3, list(namedRuleWithOperations)),
    excludeResourceRules: optional(4, list(namedRuleWithOperations)),
    matchPolicy: pointer(7, named("v1.MatchPolicyType", documentedEnum("Exact", "Equivalent"))),
  },
  { atomic: true },
);
export type MatchResources = Infer<typeof matchResources>;
