import {
  documentedEnum,
  int64,
  list,
  listMap,
  listSet,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { condition } from "../../meta/condition.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { matchCondition, matchResources } from "../rules.ts";

export const paramKind = object(
  "admissionregistration/v1.ParamKind",
  {
    apiVersion: optional(1, string),
    kind: optional(2, string),
  },
  { atomic: true },
);
export type ParamKind = Infer<typeof paramKind>;

export const validation = object("admissionregistration/v1.Validation", {
  expression: required(1, string),
  message: optional(2, string),
  reason: pointer(3, named("v1.StatusReason", string)),
  messageExpression: optional(4, string),
});
export type Validation = Infer<typeof validation>;

export const auditAnnotation = object("admissionregistration/v1.AuditAnnotation", {
  key: required(1, string),
  valueExpression: required(2, string),
});
export type AuditAnnotation = Infer<typeof auditAnnotation>;

export const variable = object(
  "admissionregistration/v1.Variable",
  {
    name: required(1, string),
    expression: required(2, string),
  },
  { atomic: true },
);
export type Variable = Infer<typeof variable>;

export const validatingAdmissionPolicySpec = object("admissionregistration/v1.ValidatingAdmissionPolicySpec", {
  paramKind: pointer(1, paramKind),
  matchConstraints: pointer(2, matchResources),
  validations: optional(3, list(validation)),
  failurePolicy: pointer(4, named("v1.FailurePolicyType", documentedEnum("Ignore", "Fail"))),
  auditAnnotations: optional(5, list(auditAnnotation)),
  matchConditions: optional(6, listMap(matchCondition, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
  variables: optional(7, listMap(variable, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type ValidatingAdmissionPolicySpec = Infer<typeof validatingAdmissionPolicySpec>;

export const expressionWarning = object("admissionregistration/v1.ExpressionWarning", {
  fieldRef: required(2, string),
  warning: required(3, string),
});
export type ExpressionWarning = Infer<typeof expressionWarning>;

export const typeChecking = object("admissionregistration/v1.TypeChecking", {
  expressionWarnings: optional(1, list(expressionWarning)),
});
export type TypeChecking = Infer<typeof typeChecking>;

export const validatingAdmissionPolicyStatus = object("admissionregistration/v1.ValidatingAdmissionPolicyStatus", {
  observedGeneration: optional(1, int64),
  typeChecking: pointer(2, typeChecking),
  conditions: optional(3, listMap(condition, "type")),
});
export type ValidatingAdmissionPolicyStatus = Infer<typeof validatingAdmissionPolicyStatus>;

export const validatingAdmissionPolicy = object("admissionregistration/v1.ValidatingAdmissionPolicy", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, validatingAdmissionPolicySpec),
  status: optional(3, validatingAdmissionPolicyStatus),
});
export type ValidatingAdmissionPolicy = Infer<typeof validatingAdmissionPolicy>;

export const paramRef = object(
  "admissionregistration/v1.ParamRef",
  {
    name: optional(1, string),
    namespace: optional(2, string),
    selector: pointer(3, labelSelector),
    parameterNotFoundAction: pointer(4, named("v1.ParameterNotFoundActionType", string)),
  },
  { atomic: true },
);
export type ParamRef = Infer<typeof paramRef>;

export const validatingAdmissionPolicyBindingSpec = object(
  "admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec",
  {
    policyName: optional(1, string),
    paramRef: pointer(2, paramRef),
    matchResources: pointer(3, matchResources),
    validationActions: optional(4, listSet(named("v1.ValidationAction", documentedEnum("Deny", "Warn", "Audit")))),
  },
);
export type ValidatingAdmissionPolicyBindingSpec = Infer<typeof validatingAdmissionPolicyBindingSpec>;

export const validatingAdmissionPolicyBinding = object("admissionregistration/v1.ValidatingAdmissionPolicyBinding", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, validatingAdmissionPolicyBindingSpec),
});
export type ValidatingAdmissionPolicyBinding = Infer<typeof validatingAdmissionPolicyBinding>;
