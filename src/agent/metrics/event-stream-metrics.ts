/** Metrics of the stream of the runtime's container events, with the names of kubelet's. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { ContainerEventsObserver } from "../runtime/container-events.ts";
import { secondsBuckets } from "./buckets.ts";

export function createEventStreamMetrics(registry: MetricRegistry): ContainerEventsObserver {
  const prefix = "kubelet_evented_pleg_connection";
  const stability = "ALPHA";
  const connected = registry
    .counter({
      name: `${prefix}_success_count`,
      help: "The number of times a streaming client was obtained to receive CRI Events.",
      stability,
    })
    .with();
  const failed = registry
    .counter({
      name: `${prefix}_error_count`,
      help: "The number of errors encountered during the establishment of streaming connection with the CRI runtime.",
      stability,
    })
    .with();
  const latency = registry
    .histogram(
      {
        name: `${prefix}_latency_seconds`,
        help: "The latency of streaming connection with the CRI runtime, measured in seconds.",
        stability,
      },
      secondsBuckets,
    )
    .with();
  return {
    onConnected: () => connected.inc(),
    onError: () => failed.inc(),
    onEvent: (ageSeconds) => latency.observe(ageSeconds),
  };
}
