import {
  base64,
  documentedEnum,
  int32,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  requiredPointer,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { matchCondition, ruleWithOperations } from "../rules.ts";

export const serviceReference = object("admissionregistration/v1.ServiceReference", {
  namespace: required(1, string),
  name: required(2, string),
  path: pointer(3, string),
  port: pointer(4, int32),
});
export type ServiceReference = Infer<typeof serviceReference>;

export const webhookClientConfig = object("admissionregistration/v1.WebhookClientConfig", {
  url: pointer(3, string),
  service: pointer(1, serviceReference),
  caBundle: optional(2, base64),
});
export type WebhookClientConfig = Infer<typeof webhookClientConfig>;

export const mutatingWebhook = object("admissionregistration/v1.MutatingWebhook", {
  name: required(1, string),
  clientConfig: required(2, webhookClientConfig),
  rules: optional(3, list(ruleWithOperations)),
  failurePolicy: pointer(4, named("v1.FailurePolicyType", documentedEnum("Ignore", "Fail"))),
  matchPolicy: pointer(9, named("v1.MatchPolicyType", documentedEnum("Exact", "Equivalent"))),
  namespaceSelector: pointer(5, labelSelector),
  objectSelector: pointer(11, labelSelector),
  sideEffects: requiredPointer(
    6,
    named("v1.SideEffectClass", documentedEnum("Unknown", "None", "Some", "NoneOnDryRun")),
  ),
  timeoutSeconds: pointer(7, int32),
  admissionReviewVersions: required(8, list(string)),
  reinvocationPolicy: pointer(10, named("v1.ReinvocationPolicyType", documentedEnum("Never", "IfNeeded"))),
  matchConditions: optional(12, listMap(matchCondition, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type MutatingWebhook = Infer<typeof mutatingWebhook>;

export const mutatingWebhookConfiguration = object("admissionregistration/v1.MutatingWebhookConfiguration", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  webhooks: optional(2, listMap(mutatingWebhook, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type MutatingWebhookConfiguration = Infer<typeof mutatingWebhookConfiguration>;

export const validatingWebhook = object("admissionregistration/v1.ValidatingWebhook", {
  name: required(1, string),
  clientConfig: required(2, webhookClientConfig),
  rules: optional(3, list(ruleWithOperations)),
  failurePolicy: pointer(4, named("v1.FailurePolicyType", documentedEnum("Ignore", "Fail"))),
  matchPolicy: pointer(9, named("v1.MatchPolicyType", documentedEnum("Exact", "Equivalent"))),
  namespaceSelector: pointer(5, labelSelector),
  objectSelector: pointer(10, labelSelector),
  sideEffects: requiredPointer(
    6,
    named("v1.SideEffectClass", documentedEnum("Unknown", "None", "Some", "NoneOnDryRun")),
  ),
  timeoutSeconds: pointer(7, int32),
  admissionReviewVersions: required(8, list(string)),
  matchConditions: optional(11, listMap(matchCondition, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type ValidatingWebhook = Infer<typeof validatingWebhook>;

export const validatingWebhookConfiguration = object("admissionregistration/v1.ValidatingWebhookConfiguration", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  webhooks: optional(2, listMap(validatingWebhook, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type ValidatingWebhookConfiguration = Infer<typeof validatingWebhookConfiguration>;
