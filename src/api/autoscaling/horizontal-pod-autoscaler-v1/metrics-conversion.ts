/** Converts metrics between `autoscaling/v2` and v1. */
import type { MetricSpec, MetricStatus, MetricTarget } from "../horizontal-pod-autoscaler/schema.ts";
import type { MetricSpecV1, MetricStatusV1 } from "./metrics.ts";

/** The quantity of v1 where v2 has none. */
const NOTHING = "0";

export function toMetricV1({ type, object, pods, resource, containerResource, external }: MetricSpec): MetricSpecV1 {
  const shares = ({ averageUtilization, averageValue }: MetricTarget) => ({
    targetAverageUtilization: averageUtilization,
    targetAverageValue: averageValue,
  });
  return {
    type: type as MetricSpecV1["type"],
    object: object && {
      target: object.describedObject,
      metricName: object.metric.name,
      targetValue: object.target.value ?? NOTHING,
      selector: object.metric.selector,
      averageValue: object.target.averageValue,
    },
    pods: pods && {
      metricName: pods.metric.name,
      targetAverageValue: pods.target.averageValue ?? NOTHING,
      selector: pods.metric.selector,
    },
    resource: resource && { name: resource.name, ...shares(resource.target) },
    containerResource: containerResource && {
      name: containerResource.name,
      ...shares(containerResource.target),
      container: containerResource.container,
    },
    external: external && {
      metricName: external.metric.name,
      metricSelector: external.metric.selector,
      targetValue: external.target.value,
      targetAverageValue: external.target.averageValue,
    },
  };
}

export function fromMetricV1(metric: MetricSpecV1): MetricSpec {
  const { type, object, pods, resource, containerResource, external } = metric;
  return dropUndefined({
    type,
    object: object && {
      describedObject: object.target,
      target: valueTarget(object.targetValue, object.averageValue),
      metric: dropUndefined({ name: object.metricName, selector: object.selector }),
    },
    pods: pods && {
      metric: dropUndefined({ name: pods.metricName, selector: pods.selector }),
      target: { type: "AverageValue", averageValue: pods.targetAverageValue },
    },
    resource: resource && { name: resource.name, target: utilizationTarget(resource) },
    containerResource: containerResource && {
      name: containerResource.name,
      target: utilizationTarget(containerResource),
      container: containerResource.container,
    },
    external: external && {
      metric: dropUndefined({ name: external.metricName, selector: external.metricSelector }),
      target: valueTarget(external.targetValue, external.targetAverageValue),
    },
  });
}

type ShareV1 = NonNullable<MetricSpecV1["resource"]>;

function utilizationTarget({ targetAverageUtilization, targetAverageValue }: ShareV1): MetricTarget {
  const type = targetAverageUtilization === undefined ? "AverageValue" : "Utilization";
  return dropUndefined({ type, averageValue: targetAverageValue, averageUtilization: targetAverageUtilization });
}

function valueTarget(value: string | undefined, averageValue: string | undefined): MetricTarget {
  if (averageValue === undefined) return dropUndefined({ type: "Value", value });
  return dropUndefined({ type: "AverageValue", value: value === NOTHING ? undefined : value, averageValue });
}

export function toMetricStatusV1(status: MetricStatus): MetricStatusV1 {
  const { type, object, pods, resource, containerResource, external } = status;
  const share = ({ averageUtilization, averageValue = NOTHING }: NonNullable<typeof resource>["current"]) => ({
    currentAverageUtilization: averageUtilization,
    currentAverageValue: averageValue,
  });
  return {
    type: type as MetricSpecV1["type"],
    object: object && {
      target: object.describedObject,
      metricName: object.metric.name,
      currentValue: object.current.value ?? NOTHING,
      selector: object.metric.selector,
      averageValue: object.current.averageValue,
    },
    pods: pods && {
      metricName: pods.metric.name,
      currentAverageValue: pods.current.averageValue ?? NOTHING,
      selector: pods.metric.selector,
    },
    resource: resource && { name: resource.name, ...share(resource.current) },
    containerResource: containerResource && {
      name: containerResource.name,
      ...share(containerResource.current),
      container: containerResource.container,
    },
    external: external && {
      metricName: external.metric.name,
      metricSelector: external.metric.selector,
      currentValue: external.current.value ?? NOTHING,
      currentAverageValue: external.current.averageValue,
    },
  };
}

export function fromMetricStatusV1(status: MetricStatusV1): MetricStatus {
  const { type, object, pods, resource, containerResource, external } = status;
  return dropUndefined({
    type,
    object: object && {
      metric: dropUndefined({ name: object.metricName, selector: object.selector }),
      current: dropUndefined({ value: object.currentValue, averageValue: object.averageValue }),
      describedObject: object.target,
    },
    pods: pods && {
      metric: dropUndefined({ name: pods.metricName, selector: pods.selector }),
      current: { averageValue: pods.currentAverageValue },
    },
    resource: resource && { name: resource.name, current: utilizationStatus(resource) },
    containerResource: containerResource && {
      name: containerResource.name,
      current: utilizationStatus(containerResource),
      container: containerResource.container,
    },
    external: external && {
      metric: dropUndefined({ name: external.metricName, selector: external.metricSelector }),
      current: dropUndefined({ value: external.currentValue, averageValue: external.currentAverageValue }),
    },
  });
}

type ShareStatusV1 = NonNullable<MetricStatusV1["resource"]>;

function utilizationStatus({ currentAverageUtilization, currentAverageValue }: ShareStatusV1) {
  return dropUndefined({ averageValue: currentAverageValue, averageUtilization: currentAverageUtilization });
}

/** Drops undefined fields, so that equal metrics serialize equally. */
export function dropUndefined<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
