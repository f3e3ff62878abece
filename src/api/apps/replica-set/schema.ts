import {
  int32,
  int64,
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

export const replicaSetSpec = object("apps/v1.ReplicaSetSpec", {
  replicas: pointer(1, int32),
  minReadySeconds: optional(4, int32),
  selector: requiredPointer(2, labelSelector),
  template: optional(3, podTemplateSpec),
});
export type ReplicaSetSpec = Infer<typeof replicaSetSpec>;

export const replicaSetCondition = object("apps/v1.ReplicaSetCondition", {
  type: required(1, named("v1.ReplicaSetConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type ReplicaSetCondition = Infer<typeof replicaSetCondition>;

export const replicaSetStatus = object("apps/v1.ReplicaSetStatus", {
  replicas: required(1, int32),
  fullyLabeledReplicas: optional(2, int32),
  readyReplicas: optional(4, int32),
  availableReplicas: optional(5, int32),
  terminatingReplicas: pointer(7, int32),
  observedGeneration: optional(3, int64),
  conditions: optional(6, listMap(replicaSetCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type ReplicaSetStatus = Infer<typeof replicaSetStatus>;

export const replicaSet = object("apps/v1.ReplicaSet", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, replicaSetSpec),
  status: optional(3, replicaSetStatus),
});
export type ReplicaSet = Infer<typeof replicaSet>;
