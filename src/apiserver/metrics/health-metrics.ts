import type { MetricRegistry } from "../../std/metrics/metrics.ts";

/** What came of health checks: the state of each, and how often it was asked for. */
export function registerHealthMetrics(
  registry: MetricRegistry,
): (endpoint: string, check: string, ok: boolean) => void {
  const stability = "STABLE" as const;
  const state = registry.gauge({
    name: "kubernetes_healthcheck",
    help: "1 for each health check that succeeded when it was last asked for, 0 for the others.",
    stability,
    labels: ["type", "name"],
  });
  const asked = registry.counter({
    name: "kubernetes_healthchecks_total",
    help: "How often each health check was asked for, by what came of it.",
    stability,
    labels: ["type", "name", "status"],
  });
  return (endpoint, check, ok) => {
    state.with(endpoint, check).set(ok ? 1 : 0);
    asked.with(endpoint, check, ok ? "success" : "error").inc();
  };
}
