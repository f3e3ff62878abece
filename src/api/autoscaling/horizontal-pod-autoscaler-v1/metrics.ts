/** The metrics in the annotations of `autoscaling/v1` autoscalers, which have no fields for them. */
import {
  documentedEnum,
  int32,
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
import { crossVersionObjectReference } from "./schema.ts";

const metricSourceType = documentedEnum("Object", "Pods", "Resource", "External", "ContainerResource");

const resourceSource = {
  name: required(1, named("v1.ResourceName", string)),
  targetAverageUtilization: pointer(2, int32),
  targetAverageValue: pointer(3, quantity),
};

export const metricSpecV1 = object("autoscaling/v1.MetricSpec", {
  type: required(1, named("v1.MetricSourceType", metricSourceType)),
  object: pointer(
    2,
    object("autoscaling/v1.ObjectMetricSource", {
      target: required(1, crossVersionObjectReference),
      metricName: required(2, string),
      targetValue: required(3, quantity),
      selector: pointer(4, labelSelector),
      averageValue: pointer(5, quantity),
    }),
  ),
  pods: pointer(
    3,
    object("autoscaling/v1.PodsMetricSource", {
      metricName: required(1, string),
      targetAverageValue: required(2, quantity),
      selector: pointer(3, labelSelector),
    }),
  ),
  resource: pointer(4, object("autoscaling/v1.ResourceMetricSource", resourceSource)),
  containerResource: pointer(
    7,
    object("autoscaling/v1.ContainerResourceMetricSource", { ...resourceSource, container: required(5, string) }),
  ),
  external: pointer(
    5,
    object("autoscaling/v1.ExternalMetricSource", {
      metricName: required(1, string),
      metricSelector: pointer(2, labelSelector),
      targetValue: pointer(3, quantity),
      targetAverageValue: pointer(4, quantity),
    }),
  ),
});
export type MetricSpecV1 = Infer<typeof metricSpecV1>;

const resourceStatus = {
  name: required(1, named("v1.ResourceName", string)),
  currentAverageUtilization: pointer(2, int32),
  currentAverageValue: required(3, quantity),
};

export const metricStatusV1 = object("autoscaling/v1.MetricStatus", {
  type: required(1, named("v1.MetricSourceType", metricSourceType)),
  object: pointer(
    2,
    object("autoscaling/v1.ObjectMetricStatus", {
      target: required(1, crossVersionObjectReference),
      metricName: required(2, string),
      currentValue: required(3, quantity),
      selector: pointer(4, labelSelector),
      averageValue: pointer(5, quantity),
    }),
  ),
  pods: pointer(
    3,
    object("autoscaling/v1.PodsMetricStatus", {
      metricName: required(1, string),
      currentAverageValue: required(2, quantity),
      selector: pointer(3, labelSelector),
    }),
  ),
  resource: pointer(4, object("autoscaling/v1.ResourceMetricStatus", resourceStatus)),
  containerResource: pointer(
    7,
    object("autoscaling/v1.ContainerResourceMetricStatus", { ...resourceStatus, container: required(4, string) }),
  ),
  external: pointer(
    5,
    object("autoscaling/v1.ExternalMetricStatus", {
      metricName: required(1, string),
      metricSelector: pointer(2, labelSelector),
      currentValue: required(3, quantity),
      currentAverageValue: pointer(4, quantity),
    }),
  ),
});
export type MetricStatusV1 = Infer<typeof metricStatusV1>;

export const conditionV1 = object("autoscaling/v1.HorizontalPodAutoscalerCondition", {
  type: required(1, named("v1.HorizontalPodAutoscalerConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
