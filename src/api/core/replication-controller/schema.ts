import {
  int32,
  int64,
  listMap,
  map,
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
import { podTemplateSpec } from "../pod-template/schema.ts";

export const replicationControllerSpec = object("core/v1.ReplicationControllerSpec", {
  replicas: pointer(1, int32, { default: 1 }),
  minReadySeconds: optional(4, int32, { default: 0 }),
  selector: optional(2, map(string, { atomic: true })),
  template: pointer(3, podTemplateSpec),
});
export type ReplicationControllerSpec = Infer<typeof replicationControllerSpec>;

export const replicationControllerCondition = object("core/v1.ReplicationControllerCondition", {
  type: required(1, named("v1.ReplicationControllerConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type ReplicationControllerCondition = Infer<typeof replicationControllerCondition>;

export const replicationControllerStatus = object("core/v1.ReplicationControllerStatus", {
  replicas: required(1, int32),
  fullyLabeledReplicas: optional(2, int32),
  readyReplicas: optional(4, int32),
  availableReplicas: optional(5, int32),
  observedGeneration: optional(3, int64),
  conditions: optional(6, listMap(replicationControllerCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
});
export type ReplicationControllerStatus = Infer<typeof replicationControllerStatus>;

export const replicationController = object("core/v1.ReplicationController", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, replicationControllerSpec),
  status: optional(3, replicationControllerStatus),
});
export type ReplicationController = Infer<typeof replicationController>;
