import {
  documentedEnum,
  inline,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { matchCondition, ruleWithOperations } from "../rules.ts";

const namedRuleWithOperations = object(
  "admissionregistration/v1alpha1.NamedRuleWithOperations",
  {
    resourceNames: optional(1, list(string)),
    ruleWithOperations: inline(2, ruleWithOperations),
  },
  { atomic: true },
);

const matchResources = object(
  "admissionregistration/v1alpha1.MatchResources",
  {
    namespaceSelector: pointer(1, labelSelector),
    objectSelector: pointer(2, labelSelector),
    resourceRules: optional(3, list(namedRuleWithOperations)),
    excludeResourceRules: optional(4, list(namedRuleWithOperations)),
    matchPolicy: pointer(7, named("v1alpha1.MatchPolicyType", documentedEnum("Exact", "Equivalent"))),
  },
  { atomic: true },
);

const paramKind = object(
  "admissionregistration/v1alpha1.ParamKind",
  {
    apiVersion: optional(1, string),
    kind: optional(2, string),
  },
  { atomic: true },
);

const variable = object("admissionregistration/v1alpha1.Variable", {
  name: required(1, string),
  expression: required(2, string),
});

const applyConfiguration = object("admissionregistration/v1alpha1.ApplyConfiguration", {
  expression: optional(1, string),
});

const jsonPatch = object("admissionregistration/v1alpha1.JSONPatch", {
  expression: optional(1, string),
});

const mutation = object("admissionregistration/v1alpha1.Mutation", {
  patchType: required(2, named("v1alpha1.PatchType", documentedEnum("ApplyConfiguration", "JSONPatch"))),
  applyConfiguration: pointer(3, applyConfiguration),
  jsonPatch: pointer(4, jsonPatch),
});
export type Mutation = Infer<typeof mutation>;

const mutatingAdmissionPolicySpec = object("admissionregistration/v1alpha1.MutatingAdmissionPolicySpec", {
  paramKind: pointer(1, paramKind),
  matchConstraints: pointer(2, matchResources),
  variables: optional(3, list(variable)),
  mutations: optional(4, list(mutation)),
  failurePolicy: pointer(5, named("v1alpha1.FailurePolicyType", documentedEnum("Ignore", "Fail"))),
  matchConditions: optional(6, listMap(matchCondition, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
  reinvocationPolicy: optional(7, documentedEnum("Never", "IfNeeded")),
});

export const mutatingAdmissionPolicy = object("admissionregistration/v1alpha1.MutatingAdmissionPolicy", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, mutatingAdmissionPolicySpec),
});
export type MutatingAdmissionPolicy = Infer<typeof mutatingAdmissionPolicy>;

const paramRef = object(
  "admissionregistration/v1alpha1.ParamRef",
  {
    name: optional(1, string),
    namespace: optional(2, string),
    selector: pointer(3, labelSelector),
    parameterNotFoundAction: pointer(4, named("v1alpha1.ParameterNotFoundActionType", documentedEnum("Allow", "Deny"))),
  },
  { atomic: true },
);

const mutatingAdmissionPolicyBindingSpec = object("admissionregistration/v1alpha1.MutatingAdmissionPolicyBindingSpec", {
  policyName: optional(1, string),
  paramRef: pointer(2, paramRef),
  matchResources: pointer(3, matchResources),
});

export const mutatingAdmissionPolicyBinding = object("admissionregistration/v1alpha1.MutatingAdmissionPolicyBinding", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, mutatingAdmissionPolicyBindingSpec),
});
export type MutatingAdmissionPolicyBinding = Infer<typeof mutatingAdmissionPolicyBinding>;
