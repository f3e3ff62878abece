import type { MetricRegistry } from "../std/metrics/metrics.ts";

/** Metrics of health checks: the last result and the number of requests of each. */
export function registerHealthMetrics(
  registry: MetricRegistry,
): (endpoint: string, check: string, ok: boolean) => void {
  const stability = "STABLE" as const;
  const state = registry.gauge({
    name: "kubernetes_healthcheck",
    help: "This metric records the result of a single healthcheck.",
    stability,
    labels: ["type", "name"],
  });
  const requests = registry.counter({
    name: "kubernetes_healthchecks_total",
    help: "This metric records the results of all healthcheck.",
    stability,
    labels: ["type", "name", "status"],
  });
  return (endpoint, check, ok) => {
    state.with(endpoint, check).set(ok ? 1 : 0);
    requests.with(endpoint, check, ok ? "success" : "error").inc();
  };
}
