/** What each metric of an autoscaler proposes, and its status. */
import type {
  HorizontalPodAutoscaler,
  MetricIdentifier,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import { formatLabelSelector } from "../../api/columns/selector-text.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { formatQuantity } from "../../api/meta/quantity.ts";
import type { AutoscalerOptions } from "../controller-options.ts";
import { messageOf } from "../workload/pod-control.ts";
import { printSelector } from "../workload/print-selector.ts";
import { type MetricsClient, type MetricsOfPods, milli } from "./metrics-client.ts";
import {
  groupPods,
  type PodGroups,
  podRequests,
  proposeByRatio,
  proposeByUsage,
  proposeByUtilization,
  proposePerPod,
  type Tolerances,
} from "./replica-calculator.ts";

export interface MetricContext {
  readonly autoscaler: HorizontalPodAutoscaler;
  readonly namespace: string;
  /** Of the target. */
  readonly specReplicas: number;
  readonly statusReplicas: number;
  /** The pods of the target, and its selector. */
  readonly pods: readonly Pod[];
  readonly selector: string;
  readonly metrics: MetricsClient;
  readonly options: AutoscalerOptions;
  readonly now: number;
}

export interface MetricProposal {
  readonly replicas: number;
  /** What the metric is, for the reason of a scaling. */
  readonly name: string;
  readonly status: MetricStatus;
}

/** The error of a metric: the reason of the condition, and the error's own message. */
export class MetricError extends Error {
  readonly reason: string;
  /** The message in the error of all metrics. */
  readonly summary: string;

  constructor(reason: string, summary: string, cause: unknown) {
    super(messageOf(cause), { cause });
    this.reason = reason;
    this.summary = `${summary}: ${cause instanceof PrefixedError ? cause.prefixed : this.message}`;
  }
}

/** The error of a read whose prefix is in the error of all metrics only, not in the condition and the event. */
class PrefixedError extends Error {
  readonly prefixed: string;

  constructor(prefix: string, cause: unknown) {
    super(messageOf(cause), { cause });
    this.prefixed = `${prefix}: ${this.message}`;
  }
}

/** Rejects with a `MetricError`. */
export async function proposeForMetric(spec: MetricSpec, context: MetricContext): Promise<MetricProposal> {
  const { object, pods, resource, containerResource, external } = spec;
  const guard = async (
    reason: string,
    summary: string,
    proposal: () => Promise<MetricProposal>,
  ): Promise<MetricProposal> => {
    try {
      return await proposal();
    } catch (error) {
      throw new MetricError(reason, summary, error);
    }
  };
  if (object !== undefined) {
    const propose = (): Promise<MetricProposal> => proposeForObject(object, context);
    return await guard("FailedGetObjectMetric", "failed to get object metric value", propose);
  }
  if (pods !== undefined) {
    const propose = (): Promise<MetricProposal> => proposeForPods(pods, context);
    return await guard("FailedGetPodsMetric", "failed to get pods metric value", propose);
  }
  if (resource !== undefined) {
    const summary = `failed to get ${resource.name} resource metric value`;
    return await guard("FailedGetResourceMetric", summary, async () => {
      const { current, ...rest } = await proposeForResource(resource.name, resource.target, undefined, context);
      return { ...rest, status: { type: "Resource", resource: { name: resource.name, current } } };
    });
  }
  if (containerResource !== undefined) {
    const { name, target, container } = containerResource;
    const summary = `failed to get ${container} container metric value`;
    return await guard("FailedGetContainerResourceMetric", summary, async () => {
      const { current, ...rest } = await proposeForResource(name, target, container, context);
      return { ...rest, status: { type: "ContainerResource", containerResource: { name, container, current } } };
    });
  }
  if (external !== undefined) {
    const summary = `failed to get ${external.metric.name} external metric value`;
    const propose = (): Promise<MetricProposal> => proposeForExternal(external, context);
    return await guard("FailedGetExternalMetric", summary, propose);
  }
  const unknown = `unknown metric source type ${JSON.stringify(spec.type)}`;
  throw new MetricError("InvalidMetricSourceType", unknown, new Error(unknown));
}

async function proposeForObject(
  { describedObject, metric, target }: NonNullable<MetricSpec["object"]>,
  context: MetricContext,
): Promise<MetricProposal> {
  const { namespace, specReplicas, statusReplicas, pods, metrics } = context;
  const read = async (): Promise<number> => {
    try {
      return await metrics.object(metric.name, namespace, describedObject, selectorText(metric.selector));
    } catch (error) {
      // Kubernetes prints the object in this order.
      const { kind, name } = describedObject;
      throw new Error(`unable to get metric ${metric.name}: ${kind} on ${namespace} ${name}/${messageOf(error)}`);
    }
  };
  const statusOf = (current: MetricValueStatus): MetricStatus => ({
    type: "Object",
    object: { describedObject, metric: identifierOf(metric), current },
  });
  if (target.type === "Value" && target.value !== undefined) {
    const value = await read();
    const replicas = proposeByRatio(specReplicas, value / milli(target.value), pods, tolerancesOf(context));
    const name = `${describedObject.kind} metric ${metric.name}`;
    return { replicas, name, status: statusOf({ value: formatMilli(value) }) };
  }
  if (target.type === "AverageValue" && target.averageValue !== undefined) {
    const value = await read().catch((error: unknown) => {
      throw new PrefixedError(`failed to get ${metric.name} object metric`, error);
    });
    const average = milli(target.averageValue);
    const { replicas, usage } = proposePerPod(statusReplicas, value, average, tolerancesOf(context));
    const name = `external metric ${metric.name}(${printOptional(metric.selector)})`;
    return { replicas, name, status: statusOf({ averageValue: formatMilli(usage) }) };
  }
  throw new Error("invalid object metric source: neither a value target nor an average value target was set");
}

async function proposeForPods(
  { metric, target }: NonNullable<MetricSpec["pods"]>,
  context: MetricContext,
): Promise<MetricProposal> {
  const { namespace, specReplicas, selector, metrics } = context;
  const values = await metrics
    .pods(metric.name, namespace, selector, selectorText(metric.selector))
    .catch((error: unknown) => {
      throw new Error(`unable to get metric ${metric.name}: ${messageOf(error)}`);
    });
  const groups = groupsOf(values, "", context);
  const average = milli(target.averageValue ?? "0");
  const { replicas, usage } = proposeByUsage(specReplicas, average, groups, tolerancesOf(context));
  return {
    replicas,
    name: `pods metric ${metric.name}`,
    status: { type: "Pods", pods: { metric: identifierOf(metric), current: { averageValue: formatMilli(usage) } } },
  };
}

async function proposeForResource(
  resource: string,
  { averageValue, averageUtilization }: MetricTarget,
  container: string | undefined,
  context: MetricContext,
) {
  const { namespace, specReplicas, pods, selector, metrics } = context;
  const read = async (): Promise<PodGroups> => {
    const values = await metrics.resource(resource, namespace, selector, container).catch((error: unknown) => {
      throw new Error(`unable to get metrics for resource ${resource}: ${messageOf(error)}`);
    });
    return groupsOf(values, resource, context);
  };
  const failed = (what: string) => (error: unknown) => {
    throw new Error(`failed to get ${resource} ${what}: ${messageOf(error)}`);
  };
  if (averageValue !== undefined) {
    const propose = async () => proposeByUsage(specReplicas, milli(averageValue), await read(), tolerancesOf(context));
    const { replicas, usage } = await propose().catch(failed("usage"));
    return { replicas, name: `${resource} resource`, current: { averageValue: formatMilli(usage) } };
  }
  if (averageUtilization === undefined) {
    throw new Error(
      "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set",
    );
  }
  const propose = async () => {
    const groups = await read();
    const requests = podRequests(pods, resource, container);
    return proposeByUtilization(specReplicas, averageUtilization, groups, requests, tolerancesOf(context));
  };
  const { replicas, usage, utilization } = await propose().catch(failed("utilization"));
  const kind = container === undefined ? "" : "container ";
  return {
    replicas,
    name: `${resource} ${kind}resource utilization (percentage of request)`,
    current: { averageUtilization: utilization, averageValue: formatMilli(usage) },
  };
}

async function proposeForExternal(
  { metric, target }: NonNullable<MetricSpec["external"]>,
  context: MetricContext,
): Promise<MetricProposal> {
  const { namespace, specReplicas, statusReplicas, pods, metrics } = context;
  const name = `external metric ${metric.name}(${printOptional(metric.selector)})`;
  const statusOf = (current: MetricValueStatus): MetricStatus => ({
    type: "External",
    external: { metric: identifierOf(metric), current },
  });
  const read = async (): Promise<number> => {
    try {
      return await metrics.external(metric.name, namespace, selectorText(metric.selector));
    } catch (error) {
      const subject = `${namespace}/${metric.name}/${printOptional(metric.selector)}`;
      throw new Error(`unable to get external metric ${subject}: ${messageOf(error)}`);
    }
  };
  if (target.averageValue !== undefined) {
    const value = await read().catch((error: unknown) => {
      throw new PrefixedError(`failed to get ${metric.name} external metric`, error);
    });
    const average = milli(target.averageValue);
    const { replicas, usage } = proposePerPod(statusReplicas, value, average, tolerancesOf(context));
    return { replicas, name, status: statusOf({ averageValue: formatMilli(usage) }) };
  }
  if (target.value !== undefined) {
    const wanted = milli(target.value);
    const propose = async () => {
      const value = await read();
      return { value, replicas: proposeByRatio(specReplicas, value / wanted, pods, tolerancesOf(context)) };
    };
    const { value, replicas } = await propose().catch((error: unknown) => {
      throw new PrefixedError(`failed to get external metric ${metric.name}`, error);
    });
    return { replicas, name, status: statusOf({ value: formatMilli(value) }) };
  }
  throw new Error("invalid external metric source: neither a value target nor an average value target was set");
}

function groupsOf(values: MetricsOfPods, resource: string, { pods, options, now }: MetricContext): PodGroups {
  if (pods.length === 0) throw new Error("no pods returned by selector while calculating replica count");
  return groupPods(pods, values, resource, { now, ...options });
}

/** The autoscaler's own tolerances, else those of the controller. */
function tolerancesOf({ autoscaler, options }: MetricContext): Tolerances {
  const { scaleUp, scaleDown } = autoscaler.spec?.behavior ?? {};
  const read = (text: string | undefined): number => (text === undefined ? options.tolerance : milli(text) / 1000);
  return { scaleUp: read(scaleUp?.tolerance), scaleDown: read(scaleDown?.tolerance) };
}

function identifierOf({ name, selector }: MetricIdentifier): MetricIdentifier {
  return selector === undefined ? { name } : { name, selector };
}

function selectorText(selector: LabelSelector | undefined): string {
  const text = formatLabelSelector(selector);
  return text === "<none>" ? "" : text;
}

function printOptional(selector: LabelSelector | undefined): string {
  return selector === undefined ? "nil" : printSelector(selector);
}

function formatMilli(amount: number): string {
  return formatQuantity({ nanos: BigInt(Math.round(amount)) * 1_000_000n, format: "DecimalSI" });
}
