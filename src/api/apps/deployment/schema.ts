import {
  boolean,
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

export const rollingUpdateDeployment = object("apps/v1.RollingUpdateDeployment", {
  maxUnavailable: pointer(1, intOrString),
  maxSurge: pointer(2, intOrString),
});
export type RollingUpdateDeployment = Infer<typeof rollingUpdateDeployment>;

export const deploymentStrategy = object("apps/v1.DeploymentStrategy", {
  type: optional(1, named("v1.DeploymentStrategyType", documentedEnum("Recreate", "RollingUpdate"))),
  rollingUpdate: pointer(2, rollingUpdateDeployment),
});
export type DeploymentStrategy = Infer<typeof deploymentStrategy>;

export const deploymentSpec = object("apps/v1.DeploymentSpec", {
  replicas: pointer(1, int32),
  selector: requiredPointer(2, labelSelector),
  template: required(3, podTemplateSpec),
  strategy: optional(4, deploymentStrategy, { patchStrategy: "retainKeys" }),
  minReadySeconds: optional(5, int32),
  revisionHistoryLimit: pointer(6, int32),
  paused: optional(7, boolean),
  progressDeadlineSeconds: pointer(9, int32),
});
export type DeploymentSpec = Infer<typeof deploymentSpec>;

export const deploymentCondition = object("apps/v1.DeploymentCondition", {
  type: required(1, named("v1.DeploymentConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastUpdateTime: optional(6, time),
  lastTransitionTime: optional(7, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type DeploymentCondition = Infer<typeof deploymentCondition>;

export const deploymentStatus = object("apps/v1.DeploymentStatus", {
  observedGeneration: optional(1, int64),
  replicas: optional(2, int32),
  updatedReplicas: optional(3, int32),
  readyReplicas: optional(7, int32),
  availableReplicas: optional(4, int32),
  unavailableReplicas: optional(5, int32),
  terminatingReplicas: pointer(9, int32),
  conditions: optional(6, listMap(deploymentCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
  collisionCount: pointer(8, int32),
});
export type DeploymentStatus = Infer<typeof deploymentStatus>;

export const deployment = object("apps/v1.Deployment", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, deploymentSpec),
  status: optional(3, deploymentStatus),
});
export type Deployment = Infer<typeof deployment>;
