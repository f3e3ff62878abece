import {
  documentedEnum,
  int32,
  int64,
  intOrString,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  requiredPointer,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const rollingUpdateDaemonSet = object("apps/v1.RollingUpdateDaemonSet", {
  maxUnavailable: pointer(1, intOrString),
  maxSurge: pointer(2, intOrString),
});
export type RollingUpdateDaemonSet = Infer<typeof rollingUpdateDaemonSet>;

export const daemonSetUpdateStrategy = object("apps/v1.DaemonSetUpdateStrategy", {
  type: optional(1, named("v1.DaemonSetUpdateStrategyType", documentedEnum("RollingUpdate", "OnDelete"))),
  rollingUpdate: pointer(2, rollingUpdateDaemonSet),
});
export type DaemonSetUpdateStrategy = Infer<typeof daemonSetUpdateStrategy>;

export const daemonSetSpec = object("apps/v1.DaemonSetSpec", {
  selector: requiredPointer(1, labelSelector),
  template: required(2, podTemplateSpec),
  updateStrategy: optional(3, daemonSetUpdateStrategy),
  minReadySeconds: optional(4, int32),
  revisionHistoryLimit: pointer(6, int32),
});
export type DaemonSetSpec = Infer<typeof daemonSetSpec>;

export const daemonSetCondition = object("apps/v1.DaemonSetCondition", {
  type: required(1, named("v1.DaemonSetConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type DaemonSetCondition = Infer<typeof daemonSetCondition>;

export const daemonSetStatus = object("apps/v1.DaemonSetStatus", {
  currentNumberScheduled: required(1, int32),
  numberMisscheduled: required(2, int32),
  desiredNumberScheduled: required(3, int32),
  numberReady: required(4, int32),
  observedGeneration: optional(5, int64),
  updatedNumberScheduled: optional(6, int32),
  numberAvailable: optional(7, int32),
  numberUnavailable: optional(8, int32),
  collisionCount: pointer(9, int32),
  conditions: optional(10, listMap(daemonSetCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type DaemonSetStatus = Infer<typeof daemonSetStatus>;

export const daemonSet = object("apps/v1.DaemonSet", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, daemonSetSpec),
  status: optional(3, daemonSetStatus),
});
export type DaemonSet = Infer<typeof daemonSet>;
