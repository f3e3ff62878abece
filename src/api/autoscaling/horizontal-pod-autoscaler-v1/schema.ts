import { int32, int64, object, optional, pointer, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const crossVersionObjectReference = object(
  "autoscaling/v1.CrossVersionObjectReference",
  {
    kind: required(1, string),
    name: required(2, string),
    apiVersion: optional(3, string),
  },
  { atomic: true },
);
export type CrossVersionObjectReference = Infer<typeof crossVersionObjectReference>;

export const horizontalPodAutoscalerSpec = object("autoscaling/v1.HorizontalPodAutoscalerSpec", {
  scaleTargetRef: required(1, crossVersionObjectReference),
  minReplicas: pointer(2, int32),
  maxReplicas: required(3, int32),
  targetCPUUtilizationPercentage: pointer(4, int32),
});
export type HorizontalPodAutoscalerSpec = Infer<typeof horizontalPodAutoscalerSpec>;

export const horizontalPodAutoscalerStatus = object("autoscaling/v1.HorizontalPodAutoscalerStatus", {
  observedGeneration: pointer(1, int64),
  lastScaleTime: pointer(2, time),
  currentReplicas: required(3, int32),
  desiredReplicas: required(4, int32),
  currentCPUUtilizationPercentage: pointer(5, int32),
});
export type HorizontalPodAutoscalerStatus = Infer<typeof horizontalPodAutoscalerStatus>;

export const horizontalPodAutoscaler = object("autoscaling/v1.HorizontalPodAutoscaler", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, horizontalPodAutoscalerSpec),
  status: optional(3, horizontalPodAutoscalerStatus),
});
export type HorizontalPodAutoscaler = Infer<typeof horizontalPodAutoscaler>;
