import {
  int32,
  int64,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  quantity,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const crossVersionObjectReference = object("autoscaling/v2.CrossVersionObjectReference", {
  kind: required(1, string),
  name: required(2, string),
  apiVersion: optional(3, string),
});
export type CrossVersionObjectReference = Infer<typeof crossVersionObjectReference>;

export const metricTarget = object("autoscaling/v2.MetricTarget", {
  type: required(1, named("v2.MetricTargetType", string)),
  value: pointer(2, quantity),
  averageValue: pointer(3, quantity),
  averageUtilization: pointer(4, int32),
});
export type MetricTarget = Infer<typeof metricTarget>;

export const metricIdentifier = object("autoscaling/v2.MetricIdentifier", {
  name: required(1, string),
  selector: pointer(2, labelSelector),
});
export type MetricIdentifier = Infer<typeof metricIdentifier>;

export const objectMetricSource = object("autoscaling/v2.ObjectMetricSource", {
  describedObject: required(1, crossVersionObjectReference),
  target: required(2, metricTarget),
  metric: required(3, metricIdentifier),
});
export type ObjectMetricSource = Infer<typeof objectMetricSource>;

export const podsMetricSource = object("autoscaling/v2.PodsMetricSource", {
  metric: required(1, metricIdentifier),
  target: required(2, metricTarget),
});
export type PodsMetricSource = Infer<typeof podsMetricSource>;

export const resourceMetricSource = object("autoscaling/v2.ResourceMetricSource", {
  name: required(1, named("v1.ResourceName", string)),
  target: required(2, metricTarget),
});
export type ResourceMetricSource = Infer<typeof resourceMetricSource>;

export const containerResourceMetricSource = object("autoscaling/v2.ContainerResourceMetricSource", {
  name: required(1, named("v1.ResourceName", string)),
  target: required(2, metricTarget),
  container: required(3, string),
});
export type ContainerResourceMetricSource = Infer<typeof containerResourceMetricSource>;

export const externalMetricSource = object("autoscaling/v2.ExternalMetricSource", {
  metric: required(1, metricIdentifier),
  target: required(2, metricTarget),
});
export type ExternalMetricSource = Infer<typeof externalMetricSource>;

export const metricSpec = object("autoscaling/v2.MetricSpec", {
  type: required(1, named("v2.MetricSourceType", string)),
  object: pointer(2, objectMetricSource),
  pods: pointer(3, podsMetricSource),
  resource: pointer(4, resourceMetricSource),
  containerResource: pointer(7, containerResourceMetricSource),
  external: pointer(5, externalMetricSource),
});
export type MetricSpec = Infer<typeof metricSpec>;

export const hpaScalingPolicy = object("autoscaling/v2.HPAScalingPolicy", {
  type: required(1, named("v2.HPAScalingPolicyType", string)),
  value: required(2, int32),
  periodSeconds: required(3, int32),
});
export type HPAScalingPolicy = Infer<typeof hpaScalingPolicy>;

export const hpaScalingRules = object("autoscaling/v2.HPAScalingRules", {
  stabilizationWindowSeconds: pointer(3, int32),
  selectPolicy: pointer(1, named("v2.ScalingPolicySelect", string)),
  // An empty list is invalid, an absent one gets the default.
  policies: optional(2, list(hpaScalingPolicy), { keepEmpty: true }),
  tolerance: pointer(4, quantity, { featureGate: "HPAConfigurableTolerance" }),
});
export type HPAScalingRules = Infer<typeof hpaScalingRules>;

export const horizontalPodAutoscalerBehavior = object("autoscaling/v2.HorizontalPodAutoscalerBehavior", {
  scaleUp: pointer(1, hpaScalingRules),
  scaleDown: pointer(2, hpaScalingRules),
});
export type HorizontalPodAutoscalerBehavior = Infer<typeof horizontalPodAutoscalerBehavior>;

export const horizontalPodAutoscalerSpec = object("autoscaling/v2.HorizontalPodAutoscalerSpec", {
  scaleTargetRef: required(1, crossVersionObjectReference),
  minReplicas: pointer(2, int32),
  maxReplicas: required(3, int32),
  metrics: optional(4, list(metricSpec)),
  behavior: pointer(5, horizontalPodAutoscalerBehavior),
});
export type HorizontalPodAutoscalerSpec = Infer<typeof horizontalPodAutoscalerSpec>;

export const metricValueStatus = object("autoscaling/v2.MetricValueStatus", {
  value: pointer(1, quantity),
  averageValue: pointer(2, quantity),
  averageUtilization: pointer(3, int32),
});
export type MetricValueStatus = Infer<typeof metricValueStatus>;

export const objectMetricStatus = object("autoscaling/v2.ObjectMetricStatus", {
  metric: required(1, metricIdentifier),
  current: required(2, metricValueStatus),
  describedObject: required(3, crossVersionObjectReference),
});
export type ObjectMetricStatus = Infer<typeof objectMetricStatus>;

export const podsMetricStatus = object("autoscaling/v2.PodsMetricStatus", {
  metric: required(1, metricIdentifier),
  current: required(2, metricValueStatus),
});
export type PodsMetricStatus = Infer<typeof podsMetricStatus>;

export const resourceMetricStatus = object("autoscaling/v2.ResourceMetricStatus", {
  name: required(1, named("v1.ResourceName", string)),
  current: required(2, metricValueStatus),
});
export type ResourceMetricStatus = Infer<typeof resourceMetricStatus>;

export const containerResourceMetricStatus = object("autoscaling/v2.ContainerResourceMetricStatus", {
  name: required(1, named("v1.ResourceName", string)),
  current: required(2, metricValueStatus),
  container: required(3, string),
});
export type ContainerResourceMetricStatus = Infer<typeof containerResourceMetricStatus>;

export const externalMetricStatus = object("autoscaling/v2.ExternalMetricStatus", {
  metric: required(1, metricIdentifier),
  current: required(2, metricValueStatus),
});
export type ExternalMetricStatus = Infer<typeof externalMetricStatus>;

export const metricStatus = object("autoscaling/v2.MetricStatus", {
  type: required(1, named("v2.MetricSourceType", string)),
  object: pointer(2, objectMetricStatus),
  pods: pointer(3, podsMetricStatus),
  resource: pointer(4, resourceMetricStatus),
  containerResource: pointer(7, containerResourceMetricStatus),
  external: pointer(5, externalMetricStatus),
});
export type MetricStatus = Infer<typeof metricStatus>;

export const horizontalPodAutoscalerCondition = object("autoscaling/v2.HorizontalPodAutoscalerCondition", {
  type: required(1, named("v2.HorizontalPodAutoscalerConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type HorizontalPodAutoscalerCondition = Infer<typeof horizontalPodAutoscalerCondition>;

export const horizontalPodAutoscalerStatus = object("autoscaling/v2.HorizontalPodAutoscalerStatus", {
  observedGeneration: pointer(1, int64),
  lastScaleTime: pointer(2, time),
  currentReplicas: optional(3, int32),
  desiredReplicas: required(4, int32),
  currentMetrics: optional(5, list(metricStatus), { emitEmpty: true }),
  conditions: optional(6, listMap(horizontalPodAutoscalerCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
});
export type HorizontalPodAutoscalerStatus = Infer<typeof horizontalPodAutoscalerStatus>;

export const horizontalPodAutoscaler = object("autoscaling/v2.HorizontalPodAutoscaler", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, horizontalPodAutoscalerSpec),
  status: optional(3, horizontalPodAutoscalerStatus),
});
export type HorizontalPodAutoscaler = Infer<typeof horizontalPodAutoscaler>;
