import {
  documentedEnum,
  int32,
  int64,
  intOrString,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { condition } from "../../meta/condition.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const podDisruptionBudgetSpec = object("policy/v1.PodDisruptionBudgetSpec", {
  minAvailable: pointer(1, intOrString),
  selector: pointer(2, labelSelector, { patchStrategy: "replace" }),
  maxUnavailable: pointer(3, intOrString),
  unhealthyPodEvictionPolicy: pointer(
    4,
    named("v1.UnhealthyPodEvictionPolicyType", documentedEnum("IfHealthyBudget", "AlwaysAllow")),
  ),
});
export type PodDisruptionBudgetSpec = Infer<typeof podDisruptionBudgetSpec>;

export const podDisruptionBudgetStatus = object("policy/v1.PodDisruptionBudgetStatus", {
  observedGeneration: optional(1, int64),
  disruptedPods: optional(2, map(time)),
  disruptionsAllowed: required(3, int32),
  currentHealthy: required(4, int32),
  desiredHealthy: required(5, int32),
  expectedPods: required(6, int32),
  conditions: optional(7, listMap(condition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type PodDisruptionBudgetStatus = Infer<typeof podDisruptionBudgetStatus>;

export const podDisruptionBudget = object("policy/v1.PodDisruptionBudget", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, podDisruptionBudgetSpec),
  status: optional(3, podDisruptionBudgetStatus),
});
export type PodDisruptionBudget = Infer<typeof podDisruptionBudget>;
