/** Metrics of the aggregation of extension servers. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { MISSING_SAN } from "./connections.ts";

export type AggregatorMetrics = ReturnType<typeof createAggregatorMetrics>;

export function createAggregatorMetrics(registry: MetricRegistry) {
  const stability = "ALPHA" as const;
  const aggregations = registry.counter({
    name: "aggregator_discovery_aggregation_count_total",
    help: "Counter of number of times discovery was aggregated",
    stability,
  });
  const unavailable = registry.gauge({
    name: "aggregator_unavailable_apiservice",
    help: "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
    stability,
    labels: ["name"],
  });
  const failures = registry.counter({
    name: "aggregator_unavailable_apiservice_total",
    help: "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
    stability,
    labels: ["name", "reason"],
  });
  const regenerations = registry.counter({
    name: "aggregator_openapi_v2_regeneration_count",
    help: "Counter of OpenAPI v2 spec regeneration count broken down by causing APIService name and reason.",
    stability,
    labels: ["apiservice", "reason"],
  });
  const regenerationSeconds = registry.gauge({
    name: "aggregator_openapi_v2_regeneration_duration",
    help: "Gauge of OpenAPI v2 spec regeneration duration in seconds.",
    stability,
    labels: ["reason"],
  });
  const insecureSha1 = registry.counter({
    name: "apiserver_kube_aggregator_x509_insecure_sha1_total",
    help:
      "Counts the number of requests to servers with insecure SHA1 signatures in their serving certificate OR the " +
      "number of connection failures due to the insecure SHA1 signatures (either/or, based on the runtime environment)",
    stability,
  });
  const missingSan = registry.counter({
    name: "apiserver_kube_aggregator_x509_missing_san_total",
    help:
      "Counts the number of requests to servers missing SAN extension in their serving certificate OR the number of " +
      "connection failures due to the lack of x509 certificate SAN extension missing (either/or, based on the runtime " +
      "environment)",
    stability,
  });
  for (const counter of [aggregations, insecureSha1, missingSan]) counter.with();
  return {
    countAggregation: (): void => aggregations.with().inc(),
    setAvailability: (name: string, isAvailable: boolean): void => unavailable.with(name).set(isAvailable ? 0 : 1),
    countUnavailable: (name: string, reason: string): void => failures.with(name, reason).inc(),
    countRegeneration(apiService: string, reason: string, seconds: number): void {
      regenerations.with(apiService, reason).inc();
      regenerationSeconds.with(reason).set(seconds);
    },
    countConnectionFailure(error: unknown): void {
      const { code } = (error ?? {}) as NodeJS.ErrnoException;
      if (code === MISSING_SAN) missingSan.with().inc();
      else if (code === "CA_MD_TOO_WEAK") insecureSha1.with().inc();
    },
    forgetApiService(name: string): void {
      unavailable.removeWhere(([own]) => own === name);
    },
  };
}
