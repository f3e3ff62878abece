/**
 * Converts autoscalers between `autoscaling/v1` and v2. Version 1 has only CPU utilization; annotations hold all other
 * metrics, so that a client of version 1 that updates an autoscaler preserves them.
 */
import { decode } from "../../../schema/decode/decode.ts";
import { list } from "../../../schema/define.ts";
import { stringify } from "../../../schema/json/encode.ts";
import { parseJson } from "../../../schema/json/parse.ts";
import type { Infer, ObjectSchema, Schema } from "../../../schema/schema.ts";
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  HorizontalPodAutoscalerStatus,
  MetricSpec,
  MetricStatus,
} from "../horizontal-pod-autoscaler/schema.ts";
import { horizontalPodAutoscalerBehavior } from "../horizontal-pod-autoscaler/schema.ts";
import { conditionV1, metricSpecV1, metricStatusV1 } from "./metrics.ts";
import { dropUndefined, fromMetricStatusV1, fromMetricV1, toMetricStatusV1, toMetricV1 } from "./metrics-conversion.ts";
import type { HorizontalPodAutoscaler as HorizontalPodAutoscalerV1 } from "./schema.ts";

const METRICS = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions";

/** The default target, in percent of the CPU request. */
const TARGET_UTILIZATION = 80;

export function cpuUtilizationMetric(averageUtilization = TARGET_UTILIZATION): MetricSpec {
  return { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization } } };
}

type Annotations = Readonly<Record<string, string>>;

function parseAnnotation<S extends Schema>(schema: S, text: string | undefined): Infer<S> | undefined {
  if (text === undefined) return undefined;
  try {
    const { value, errors } = decode(schema, parseJson(Buffer.from(text)).value);
    return errors.length > 0 ? undefined : value;
  } catch (error) {
    // Clients can write any annotation: invalid ones are ignored.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function setAnnotations<T extends HorizontalPodAutoscaler | HorizontalPodAutoscalerV1>(
  object: T,
  annotations: Annotations,
): T["metadata"] {
  const { annotations: _, ...metadata } = object.metadata ?? {};
  return Object.keys(annotations).length === 0 ? metadata : { ...metadata, annotations };
}

/** The annotations without those that fields of version 2 replace. */
function dropConversionAnnotations(annotations: Annotations = {}): Annotations {
  const { [METRICS]: _, [CURRENT_METRICS]: __, [BEHAVIOR]: ___, [CONDITIONS]: ____, ...own } = annotations;
  return own;
}

export function toV2(object: HorizontalPodAutoscalerV1): HorizontalPodAutoscaler {
  const annotations = object.metadata?.annotations ?? {};
  const { targetCPUUtilizationPercentage: target, ...spec }: SpecV1 = object.spec ?? emptySpec;
  const metrics = (parseAnnotation(list(metricSpecV1), annotations[METRICS]) ?? []).map(fromMetricV1);
  if (target !== undefined) metrics.push(cpuUtilizationMetric(target));
  if (metrics.length === 0) metrics.push(cpuUtilizationMetric());
  const behavior = parseAnnotation(horizontalPodAutoscalerBehavior, annotations[BEHAVIOR]);
  const { spec: _, status: __, ...rest } = object;
  return {
    ...rest,
    metadata: setAnnotations(object, dropConversionAnnotations(annotations)),
    spec: dropUndefined({
      ...spec,
      metrics,
      behavior: Object.keys(behavior ?? {}).length === 0 ? undefined : behavior,
    }),
    ...(object.status === undefined ? {} : { status: toStatusV2(object.status, annotations) }),
  };
}

type SpecV1 = NonNullable<HorizontalPodAutoscalerV1["spec"]>;

const emptySpec: { readonly scaleTargetRef: CrossVersionObjectReference; readonly maxReplicas: number } = {
  scaleTargetRef: { kind: "", name: "" },
  maxReplicas: 0,
};

function toStatusV2(
  { currentCPUUtilizationPercentage: current, ...status }: NonNullable<HorizontalPodAutoscalerV1["status"]>,
  annotations: Annotations,
): HorizontalPodAutoscalerStatus {
  const cpu: MetricStatus | undefined =
    current === undefined
      ? undefined
      : { type: "Resource", resource: { name: "cpu", current: { averageUtilization: current } } };
  const all = parseAnnotation(list(metricStatusV1), annotations[CURRENT_METRICS])?.map(fromMetricStatusV1) ?? [];
  const currentMetrics = all.length > 0 ? all : cpu === undefined ? undefined : [cpu];
  return dropUndefined({
    ...status,
    currentMetrics,
    conditions: parseAnnotation(list(conditionV1), annotations[CONDITIONS]),
  });
}

export function fromV2(object: HorizontalPodAutoscaler): HorizontalPodAutoscalerV1 {
  const { metrics = [], behavior, ...spec }: HorizontalPodAutoscalerSpec = object.spec ?? emptySpec;
  const { currentMetrics = [], conditions = [], ...status } = object.status ?? emptyStatus;
  const cpu = metrics.filter(isCpuUtilization).at(-1)?.resource?.target.averageUtilization;
  const currentCpu = currentMetrics
    .filter(({ type, resource }) => type === "Resource" && resource?.name === "cpu")
    .map(({ resource }) => resource?.current.averageUtilization)
    .findLast((utilization) => utilization !== undefined);
  const others = metrics.filter((metric) => !isCpuUtilization(metric));
  const annotations = dropUndefined({
    ...dropConversionAnnotations(object.metadata?.annotations),
    [METRICS]: serializeAnnotation(metricSpecV1, others.map(toMetricV1)),
    [CURRENT_METRICS]: serializeAnnotation(metricStatusV1, currentMetrics.map(toMetricStatusV1)),
    [BEHAVIOR]: behavior && stringify(horizontalPodAutoscalerBehavior, behavior),
    [CONDITIONS]: serializeAnnotation(conditionV1, conditions),
  }) as Annotations;
  const { spec: _, status: __, ...rest } = object;
  return {
    ...rest,
    metadata: setAnnotations(object, annotations),
    spec: dropUndefined({ ...spec, targetCPUUtilizationPercentage: cpu }),
    ...(object.status === undefined
      ? {}
      : {
          status: dropUndefined({
            ...status,
            currentReplicas: status.currentReplicas ?? 0,
            currentCPUUtilizationPercentage: currentCpu,
          }),
        }),
  };
}

const emptyStatus: HorizontalPodAutoscalerStatus = { desiredReplicas: 0 };

function isCpuUtilization({ type, resource }: MetricSpec): boolean {
  return type === "Resource" && resource?.name === "cpu" && resource.target.averageUtilization !== undefined;
}

function serializeAnnotation(schema: ObjectSchema, items: readonly object[]): string | undefined {
  return items.length === 0 ? undefined : `[${items.map((item) => stringify(schema, item)).join(",")}]`;
}
