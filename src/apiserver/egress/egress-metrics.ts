/** Metrics of connections through egress proxies, with Kubernetes' names. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";

const SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 12.5];
const stability = "ALPHA" as const;

export type EgressMetrics = ReturnType<typeof createEgressMetrics>;

export function createEgressMetrics(registry: MetricRegistry) {
  const labels = ["protocol", "transport"];
  return {
    starts: registry.counter({
      name: "apiserver_egress_dialer_dial_start_total",
      help: "Number of connections through egress proxies that were started.",
      stability,
      labels,
    }),
    seconds: registry.histogram(
      {
        name: "apiserver_egress_dialer_dial_duration_seconds",
        help: "Duration until a connection through an egress proxy was open, in seconds.",
        stability,
        labels,
      },
      SECONDS,
    ),
    failures: registry.counter({
      name: "apiserver_egress_dialer_dial_failure_count",
      help: "Number of failed connections; the stage is connect for the proxy itself, proxy for what it connects to.",
      stability,
      labels: [...labels, "stage"],
    }),
  };
}
