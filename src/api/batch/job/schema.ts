import {
  boolean,
  documentedEnum,
  int32,
  int64,
  list,
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
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const podFailurePolicyOnExitCodesRequirement = object("batch/v1.PodFailurePolicyOnExitCodesRequirement", {
  containerName: pointer(1, string),
  operator: required(2, named("v1.PodFailurePolicyOnExitCodesOperator", documentedEnum("In", "NotIn"))),
  values: required(3, listSet(int32)),
});
export type PodFailurePolicyOnExitCodesRequirement = Infer<typeof podFailurePolicyOnExitCodesRequirement>;

export const podFailurePolicyOnPodConditionsPattern = object("batch/v1.PodFailurePolicyOnPodConditionsPattern", {
  type: required(1, named("v1.PodConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
});
export type PodFailurePolicyOnPodConditionsPattern = Infer<typeof podFailurePolicyOnPodConditionsPattern>;

export const podFailurePolicyRule = object("batch/v1.PodFailurePolicyRule", {
  action: required(1, named("v1.PodFailurePolicyAction", documentedEnum("FailJob", "FailIndex", "Ignore", "Count"))),
  onExitCodes: pointer(2, podFailurePolicyOnExitCodesRequirement),
  onPodConditions: optional(3, list(podFailurePolicyOnPodConditionsPattern)),
});
export type PodFailurePolicyRule = Infer<typeof podFailurePolicyRule>;

export const podFailurePolicy = object("batch/v1.PodFailurePolicy", {
  rules: required(1, list(podFailurePolicyRule)),
});
export type PodFailurePolicy = Infer<typeof podFailurePolicy>;

export const successPolicyRule = object("batch/v1.SuccessPolicyRule", {
  succeededIndexes: pointer(1, string),
  succeededCount: pointer(2, int32),
});
export type SuccessPolicyRule = Infer<typeof successPolicyRule>;

export const successPolicy = object("batch/v1.SuccessPolicy", {
  rules: required(1, list(successPolicyRule)),
});
export type SuccessPolicy = Infer<typeof successPolicy>;

export const jobSpec = object("batch/v1.JobSpec", {
  parallelism: pointer(1, int32),
  completions: pointer(2, int32),
  activeDeadlineSeconds: pointer(3, int64),
  podFailurePolicy: pointer(11, podFailurePolicy),
  successPolicy: pointer(16, successPolicy),
  backoffLimit: pointer(7, int32),
  backoffLimitPerIndex: pointer(12, int32),
  maxFailedIndexes: pointer(13, int32),
  selector: pointer(4, labelSelector),
  manualSelector: pointer(5, boolean),
  template: required(6, podTemplateSpec),
  ttlSecondsAfterFinished: pointer(8, int32),
  completionMode: pointer(9, named("v1.CompletionMode", documentedEnum("NonIndexed", "Indexed"))),
  suspend: pointer(10, boolean),
  podReplacementPolicy: pointer(14, named("v1.PodReplacementPolicy", documentedEnum("TerminatingOrFailed", "Failed"))),
  managedBy: pointer(15, string),
});
export type JobSpec = Infer<typeof jobSpec>;

export const jobCondition = object("batch/v1.JobCondition", {
  type: required(1, named("v1.JobConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastProbeTime: optional(3, time),
  lastTransitionTime: optional(4, time),
  reason: optional(5, string),
  message: optional(6, string),
});
export type JobCondition = Infer<typeof jobCondition>;

export const uncountedTerminatedPods = object("batch/v1.UncountedTerminatedPods", {
  succeeded: optional(1, listSet(named("types.UID", string))),
  failed: optional(2, listSet(named("types.UID", string))),
});
export type UncountedTerminatedPods = Infer<typeof uncountedTerminatedPods>;

export const jobStatus = object("batch/v1.JobStatus", {
  conditions: optional(1, list(jobCondition), { patchStrategy: "merge", patchMergeKey: "type" }),
  startTime: pointer(2, time),
  completionTime: pointer(3, time),
  active: optional(4, int32),
  succeeded: optional(5, int32),
  failed: optional(6, int32),
  terminating: pointer(11, int32),
  completedIndexes: optional(7, string),
  failedIndexes: pointer(10, string),
  uncountedTerminatedPods: pointer(8, uncountedTerminatedPods),
  ready: pointer(9, int32),
});
export type JobStatus = Infer<typeof jobStatus>;

export const job = object("batch/v1.Job", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, jobSpec),
  status: optional(3, jobStatus),
});
export type Job = Infer<typeof job>;
