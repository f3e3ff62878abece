import {
  boolean,
  int32,
  list,
  listMap,
  listSet,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const priorityLevelConfigurationReference = object("flowcontrol/v1.PriorityLevelConfigurationReference", {
  name: required(1, string),
});
export type PriorityLevelConfigurationReference = Infer<typeof priorityLevelConfigurationReference>;

export const flowDistinguisherMethod = object("flowcontrol/v1.FlowDistinguisherMethod", {
  type: required(1, named("v1.FlowDistinguisherMethodType", string)),
});
export type FlowDistinguisherMethod = Infer<typeof flowDistinguisherMethod>;

export const userSubject = object("flowcontrol/v1.UserSubject", {
  name: required(1, string),
});
export type UserSubject = Infer<typeof userSubject>;

export const groupSubject = object("flowcontrol/v1.GroupSubject", {
  name: required(1, string),
});
export type GroupSubject = Infer<typeof groupSubject>;

export const serviceAccountSubject = object("flowcontrol/v1.ServiceAccountSubject", {
  namespace: required(1, string),
  name: required(2, string),
});
export type ServiceAccountSubject = Infer<typeof serviceAccountSubject>;

export const subject = object(
  "flowcontrol/v1.Subject",
  {
    kind: required(1, named("v1.SubjectKind", string)),
    user: pointer(2, userSubject),
    group: pointer(3, groupSubject),
    serviceAccount: pointer(4, serviceAccountSubject),
  },
  { unions: [{ discriminator: "kind", members: ["group", "serviceAccount", "user"] }] },
);
export type Subject = Infer<typeof subject>;

export const resourcePolicyRule = object("flowcontrol/v1.ResourcePolicyRule", {
  verbs: required(1, listSet(string)),
  apiGroups: required(2, listSet(string)),
  resources: required(3, listSet(string)),
  clusterScope: optional(4, boolean),
  namespaces: optional(5, listSet(string), { emitEmpty: true }),
});
export type ResourcePolicyRule = Infer<typeof resourcePolicyRule>;

export const nonResourcePolicyRule = object("flowcontrol/v1.NonResourcePolicyRule", {
  verbs: required(1, listSet(string)),
  nonResourceURLs: required(6, listSet(string)),
});
export type NonResourcePolicyRule = Infer<typeof nonResourcePolicyRule>;

export const policyRulesWithSubjects = object("flowcontrol/v1.PolicyRulesWithSubjects", {
  subjects: required(1, list(subject)),
  resourceRules: optional(2, list(resourcePolicyRule)),
  nonResourceRules: optional(3, list(nonResourcePolicyRule)),
});
export type PolicyRulesWithSubjects = Infer<typeof policyRulesWithSubjects>;

export const flowSchemaSpec = object("flowcontrol/v1.FlowSchemaSpec", {
  priorityLevelConfiguration: required(1, priorityLevelConfigurationReference),
  matchingPrecedence: optional(2, int32, { emitEmpty: true }),
  distinguisherMethod: pointer(3, flowDistinguisherMethod),
  rules: optional(4, list(policyRulesWithSubjects)),
});
export type FlowSchemaSpec = Infer<typeof flowSchemaSpec>;

export const flowSchemaCondition = object("flowcontrol/v1.FlowSchemaCondition", {
  type: optional(1, named("v1.FlowSchemaConditionType", string)),
  status: optional(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type FlowSchemaCondition = Infer<typeof flowSchemaCondition>;

export const flowSchemaStatus = object("flowcontrol/v1.FlowSchemaStatus", {
  conditions: optional(1, listMap(flowSchemaCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type FlowSchemaStatus = Infer<typeof flowSchemaStatus>;

export const flowSchema = object("flowcontrol/v1.FlowSchema", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, flowSchemaSpec),
  status: optional(3, flowSchemaStatus),
});
export type FlowSchema = Infer<typeof flowSchema>;
