/** Metrics of pods and objects from the resource, custom and external metrics APIs. Amounts are in thousandths. */
import type { CrossVersionObjectReference } from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { parseQuantity, quantityMilliValue } from "../../api/meta/quantity.ts";
import { typeMeta } from "../../api/meta/type-meta.ts";
import { podMetricsKind } from "../../api/metrics/kinds.ts";
import type { PodMetrics } from "../../api/metrics/schema.ts";
import { parseApiVersion } from "../../api/scheme.ts";
import type { Client } from "../../client/client.ts";
import { int64, list, object, optional, pointer, quantity, required, string, time } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { parseDuration } from "../../schema/value/time.ts";
import { messageOf } from "../workload/pod-control.ts";
import { isNotFound, resourceName, type Scales } from "../workload/scales.ts";

/** The window of a custom metric that names none. */
const WINDOW_MS = 60_000;
const CUSTOM_VERSIONS = ["v1beta2", "v1beta1"];
const CUSTOM_ERROR = "unable to fetch metrics from custom metrics API";

/** No version of the custom metrics API is served. */
class MissingApiError extends Error {}

export interface PodMetric {
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly windowMs: number;
}

/** By the name of the pod. */
export type MetricsOfPods = ReadonlyMap<string, PodMetric>;

const describedObject = object("custom.metrics/v1beta2.ObjectReference", { name: optional(1, string) });
const metricValue = object("custom.metrics/v1beta2.MetricValue", {
  ...typeMeta,
  describedObject: required(1, describedObject),
  timestamp: required(2, time),
  windowSeconds: pointer(3, int64),
  value: required(4, quantity),
});
const metricValueList = object("custom.metrics/v1beta2.MetricValueList", {
  ...typeMeta,
  metadata: optional(1, listMeta),
  items: required(2, list(metricValue)),
});
type MetricValueList = Infer<typeof metricValueList> & ApiObject;

const externalMetricValue = object("external.metrics/v1beta1.ExternalMetricValue", {
  ...typeMeta,
  metricName: required(1, string),
  timestamp: required(3, time),
  value: required(5, quantity),
});
type ExternalMetricValue = Infer<typeof externalMetricValue> & ApiObject;

/** A kind of a metrics API, which no server stores. */
function metricsKind<T extends ApiObject>(
  group: string,
  version: string,
  plural: string,
  kind: string,
  schema: Kind<T>["schema"],
): Kind<T> {
  return {
    group,
    version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: "",
    shortNames: [],
    categories: [],
    namespaced: true,
    verbs: ["get", "list"],
    subresources: [],
    storageName: "",
    schema,
    columns: [],
    selectableFields: {},
    strategy: {},
  };
}

export class MetricsClient {
  readonly #client: Client;
  readonly #scales: Scales;
  readonly #signal: AbortSignal;

  /** `scales` finds the kinds of described objects. */
  constructor(client: Client, scales: Scales, signal: AbortSignal) {
    this.#client = client;
    this.#scales = scales;
    this.#signal = signal;
  }

  /** The usage of the pods, or of one container of each. */
  async resource(
    resource: string,
    namespace: string,
    labelSelector: string,
    container: string | undefined,
  ): Promise<MetricsOfPods> {
    let items: readonly PodMetrics[];
    try {
      ({ items } = await this.#client.list(podMetricsKind, { namespace, labelSelector }, this.#signal));
    } catch (error) {
      const why = isNotFound(error) ? missingApi("pods.metrics.k8s.io") : messageOf(error);
      throw new Error(`unable to fetch metrics from resource metrics API: ${why}`);
    }
    if (items.length === 0) throw new Error("no metrics returned from resource metrics API");
    const metrics = new Map<string, PodMetric>();
    for (const pod of items) {
      const value = container === undefined ? podUsage(pod, resource) : containerUsage(pod, resource, container);
      if (value === undefined) continue;
      const windowMs = Number((parseDuration(pod.window) ?? 0n) / 1_000_000n);
      metrics.set(pod.metadata?.name ?? "", { value, at: Date.parse(pod.timestamp), windowMs });
    }
    return metrics;
  }

  async pods(metric: string, namespace: string, labelSelector: string, metricSelector: string): Promise<MetricsOfPods> {
    const items = await this.#custom("pods", { namespace, name: "*" }, metric, { labelSelector, metricSelector });
    if (items.length === 0) throw new Error("no metrics returned from custom metrics API");
    return new Map(
      items.map(({ describedObject: { name = "" }, value, timestamp, windowSeconds }) => [
        name,
        {
          value: milli(value),
          at: Date.parse(timestamp),
          windowMs: windowSeconds === undefined ? WINDOW_MS : Number(windowSeconds) * 1000,
        },
      ]),
    );
  }

  async object(
    metric: string,
    namespace: string,
    { apiVersion = "", kind, name }: CrossVersionObjectReference,
    metricSelector: string,
  ): Promise<number> {
    const group = parseApiVersion(apiVersion)?.group ?? "";
    const isNamespace = kind === "Namespace" && group === "";
    const [found] = await this.#scales.kindsOf(apiVersion === "" ? "v1" : apiVersion, kind, this.#signal);
    // An API that is not served is reported before a kind that does not exist.
    const plural =
      found === undefined ? resourceName({ group, plural: `${kind.toLowerCase()}s` }) : resourceName(found);
    const values = isNamespace
      ? this.#custom("metrics", { namespace, name: metric }, undefined, { metricSelector })
      : this.#custom(plural, { namespace, name }, metric, { metricSelector });
    const items = await values.catch((error: unknown) => {
      if (found === undefined && !(error instanceof MissingApiError)) return [];
      throw error;
    });
    if (found === undefined) {
      const object = group === "" ? kind : `${kind}.${group}`;
      const noMatch = `no matches for kind ${JSON.stringify(kind)} in group ${JSON.stringify(group)}`;
      throw new Error(`${CUSTOM_ERROR}: unable to map kind ${object} to resource: ${noMatch}`);
    }
    const [value] = items;
    if (value === undefined || items.length > 1) {
      const count = `${items.length} results when we asked for exactly one`;
      throw new Error(`${CUSTOM_ERROR}: the custom metrics API server returned ${count}`);
    }
    return milli(value.value);
  }

  async external(metric: string, namespace: string, labelSelector: string): Promise<number> {
    const group = "external.metrics.k8s.io";
    const kind = metricsKind<ExternalMetricValue>(group, "v1beta1", metric, "ExternalMetricValue", externalMetricValue);
    let items: readonly ExternalMetricValue[];
    try {
      ({ items } = await this.#client.list(kind, { namespace, labelSelector }, this.#signal));
    } catch (error) {
      const why = isApiMissing(error) ? missingApi(`${metric}.${group}`) : messageOf(error);
      throw new Error(`unable to fetch metrics from external metrics API: ${why}`);
    }
    if (items.length === 0) throw new Error("no metrics returned from external metrics API");
    return items.reduce((sum, { value }) => sum + milli(value), 0);
  }

  async #custom(
    plural: string,
    name: { readonly namespace: string; readonly name: string },
    metric: string | undefined,
    { labelSelector, metricSelector }: { readonly labelSelector?: string; readonly metricSelector: string },
  ): Promise<MetricValueList["items"]> {
    const query = { labelSelector, metricLabelSelector: metricSelector };
    for (const version of CUSTOM_VERSIONS) {
      const kind = metricsKind<MetricValueList>(
        "custom.metrics.k8s.io",
        version,
        plural,
        "MetricValueList",
        metricValueList,
      );
      try {
        const { items } =
          metric === undefined
            ? await this.#client.get(kind, name, this.#signal)
            : await this.#client.getSubresource(kind as Kind, name, metric, kind, { query, signal: this.#signal });
        return items;
      } catch (error) {
        if (isApiMissing(error)) continue;
        throw new Error(`${CUSTOM_ERROR}: ${messageOf(error)}`);
      }
    }
    throw new MissingApiError(`${CUSTOM_ERROR}: no known available metric versions found`);
  }
}

/** The whole API is not served, as opposed to a metric that it lacks. */
function isApiMissing(error: unknown): boolean {
  return isNotFound(error) && /could not find the requested resource|404 page not found/.test(messageOf(error));
}

function missingApi(resource: string): string {
  return `the server could not find the requested resource (get ${resource})`;
}

/** Undefined if one of the containers lacks the resource. */
function podUsage({ containers }: PodMetrics, resource: string): number | undefined {
  const usages = containers.map(({ usage }) => usage[resource]);
  if (usages.length === 0 || usages.includes(undefined)) return undefined;
  return usages.reduce((sum: number, usage) => sum + milli(usage ?? "0"), 0);
}

/** Undefined if the container lacks the resource, or the pod has no such container. */
function containerUsage({ containers }: PodMetrics, resource: string, name: string): number | undefined {
  const usage = containers.find((each) => each.name === name)?.usage[resource];
  return usage === undefined ? undefined : milli(usage);
}

export function milli(text: string): number {
  const parsed = parseQuantity(text);
  return parsed === undefined ? 0 : quantityMilliValue(parsed);
}
