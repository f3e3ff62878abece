import {
  documentedEnum,
  int32,
  int64,
  intOrString,
  list,
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
import { persistentVolumeClaim } from "../../core/persistent-volume-claim/schema.ts";
import { podTemplateSpec } from "../../core/pod-template/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const rollingUpdateStatefulSetStrategy = object("apps/v1.RollingUpdateStatefulSetStrategy", {
  partition: pointer(1, int32),
  maxUnavailable: pointer(2, intOrString),
});
export type RollingUpdateStatefulSetStrategy = Infer<typeof rollingUpdateStatefulSetStrategy>;

export const statefulSetUpdateStrategy = object("apps/v1.StatefulSetUpdateStrategy", {
  type: optional(1, named("v1.StatefulSetUpdateStrategyType", documentedEnum("RollingUpdate", "OnDelete"))),
  rollingUpdate: pointer(2, rollingUpdateStatefulSetStrategy),
});
export type StatefulSetUpdateStrategy = Infer<typeof statefulSetUpdateStrategy>;

export const statefulSetPersistentVolumeClaimRetentionPolicy = object(
  "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
  {
    whenDeleted: optional(1, named("v1.PersistentVolumeClaimRetentionPolicyType", string)),
    whenScaled: optional(2, named("v1.PersistentVolumeClaimRetentionPolicyType", string)),
  },
);
export type StatefulSetPersistentVolumeClaimRetentionPolicy = Infer<
  typeof statefulSetPersistentVolumeClaimRetentionPolicy
>;

export const statefulSetOrdinals = object("apps/v1.StatefulSetOrdinals", {
  start: optional(1, int32, { emitEmpty: true }),
});
export type StatefulSetOrdinals = Infer<typeof statefulSetOrdinals>;

export const statefulSetSpec = object("apps/v1.StatefulSetSpec", {
  replicas: pointer(1, int32),
  selector: requiredPointer(2, labelSelector),
  template: required(3, podTemplateSpec),
  volumeClaimTemplates: optional(4, list(persistentVolumeClaim)),
  serviceName: optional(5, string, { emitEmpty: true }),
  podManagementPolicy: optional(6, named("v1.PodManagementPolicyType", documentedEnum("OrderedReady", "Parallel"))),
  updateStrategy: optional(7, statefulSetUpdateStrategy),
  revisionHistoryLimit: pointer(8, int32),
  minReadySeconds: optional(9, int32),
  persistentVolumeClaimRetentionPolicy: pointer(10, statefulSetPersistentVolumeClaimRetentionPolicy),
  ordinals: pointer(11, statefulSetOrdinals),
});
export type StatefulSetSpec = Infer<typeof statefulSetSpec>;

export const statefulSetCondition = object("apps/v1.StatefulSetCondition", {
  type: required(1, named("v1.StatefulSetConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type StatefulSetCondition = Infer<typeof statefulSetCondition>;

export const statefulSetStatus = object("apps/v1.StatefulSetStatus", {
  observedGeneration: optional(1, int64),
  replicas: required(2, int32),
  readyReplicas: optional(3, int32),
  currentReplicas: optional(4, int32),
  updatedReplicas: optional(5, int32),
  currentRevision: optional(6, string),
  updateRevision: optional(7, string),
  collisionCount: pointer(9, int32),
  conditions: optional(10, listMap(statefulSetCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
  availableReplicas: optional(11, int32, { emitEmpty: true }),
});
export type StatefulSetStatus = Infer<typeof statefulSetStatus>;

export const statefulSet = object("apps/v1.StatefulSet", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, statefulSetSpec),
  status: optional(3, statefulSetStatus),
});
export type StatefulSet = Infer<typeof statefulSet>;
