import {
  documentedEnum,
  int32,
  int64,
  list,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { nodeSelector, nodeSelectorTerm } from "../node/selector.ts";

export const preferredSchedulingTerm = object("core/v1.PreferredSchedulingTerm", {
  weight: required(1, int32),
  preference: required(2, nodeSelectorTerm),
});
export type PreferredSchedulingTerm = Infer<typeof preferredSchedulingTerm>;

export const nodeAffinity = object("core/v1.NodeAffinity", {
  requiredDuringSchedulingIgnoredDuringExecution: pointer(1, nodeSelector),
  preferredDuringSchedulingIgnoredDuringExecution: optional(2, list(preferredSchedulingTerm)),
});
export type NodeAffinity = Infer<typeof nodeAffinity>;

export const podAffinityTerm = object("core/v1.PodAffinityTerm", {
  labelSelector: pointer(1, labelSelector),
  namespaces: optional(2, list(string)),
  topologyKey: required(3, string),
  namespaceSelector: pointer(4, labelSelector),
  matchLabelKeys: optional(5, list(string)),
  mismatchLabelKeys: optional(6, list(string)),
});
export type PodAffinityTerm = Infer<typeof podAffinityTerm>;

export const weightedPodAffinityTerm = object("core/v1.WeightedPodAffinityTerm", {
  weight: required(1, int32),
  podAffinityTerm: required(2, podAffinityTerm),
});
export type WeightedPodAffinityTerm = Infer<typeof weightedPodAffinityTerm>;

export const podAffinity = object("core/v1.PodAffinity", {
  requiredDuringSchedulingIgnoredDuringExecution: optional(1, list(podAffinityTerm)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(2, list(weightedPodAffinityTerm)),
});
export type PodAffinity = Infer<typeof podAffinity>;

export const podAntiAffinity = object("core/v1.PodAntiAffinity", {
  requiredDuringSchedulingIgnoredDuringExecution: optional(1, list(podAffinityTerm)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(2, list(weightedPodAffinityTerm)),
});
export type PodAntiAffinity = Infer<typeof podAntiAffinity>;

export const affinity = object("core/v1.Affinity", {
  nodeAffinity: pointer(1, nodeAffinity),
  podAffinity: pointer(2, podAffinity),
  podAntiAffinity: pointer(3, podAntiAffinity),
});
export type Affinity = Infer<typeof affinity>;

export const toleration = object("core/v1.Toleration", {
  key: optional(1, string),
  operator: optional(2, named("v1.TolerationOperator", documentedEnum("Exists", "Equal"))),
  value: optional(3, string),
  effect: optional(4, named("v1.TaintEffect", documentedEnum("NoSchedule", "PreferNoSchedule", "NoExecute"))),
  tolerationSeconds: pointer(5, int64),
});
export type Toleration = Infer<typeof toleration>;

export const topologySpreadConstraint = object("core/v1.TopologySpreadConstraint", {
  maxSkew: required(1, int32),
  topologyKey: required(2, string),
  whenUnsatisfiable: required(
    3,
    named("v1.UnsatisfiableConstraintAction", documentedEnum("DoNotSchedule", "ScheduleAnyway")),
  ),
  labelSelector: pointer(4, labelSelector),
  minDomains: pointer(5, int32),
  nodeAffinityPolicy: pointer(6, named("v1.NodeInclusionPolicy", documentedEnum("Ignore", "Honor"))),
  nodeTaintsPolicy: pointer(7, named("v1.NodeInclusionPolicy", documentedEnum("Ignore", "Honor"))),
  matchLabelKeys: optional(8, list(string)),
});
export type TopologySpreadConstraint = Infer<typeof topologySpreadConstraint>;
