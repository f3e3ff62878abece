/** Metrics of kubelet's operations that the agent does without: dashboards and alerts find them with their zeros. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";

const stability = "ALPHA";
/** Seconds: from 10 minutes to 4 years. */
const CERTIFICATE_AGE_BUCKETS = [
  600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];

/** `hasApiServer`: the agent is not standalone. */
export function registerUnusedOperations(registry: MetricRegistry, hasApiServer: boolean): void {
  const counter = (name: string, help: string): void => void registry.counter({ name, help, stability });
  // Listings of the runtime are compared, without a queue of events that could overflow.
  counter("kubelet_pleg_discard_events", "The number of discard events in PLEG.");
  // Volumes are found by their mounts, without steps that could fail.
  const reconstructed = "from the operating system during kubelet startup.";
  counter(
    "reconstruct_volume_operations_total",
    `The number of volumes that were attempted to be reconstructed ${reconstructed} This includes both successful ` +
      "and failed reconstruction.",
  );
  counter(
    "reconstruct_volume_operations_errors_total",
    `The number of volumes that failed reconstruction ${reconstructed}`,
  );
  const forced = "after their reconstruction failed during kubelet startup.";
  counter(
    "force_cleaned_failed_volume_operations_total",
    `The number of volumes that were force cleaned ${forced} This includes both successful and failed cleanups.`,
  );
  counter(
    "force_cleaned_failed_volume_operation_errors_total",
    `The number of volumes that failed force cleanup ${forced}`,
  );
  registerTransports(registry, hasApiServer ? 1 : 0);
}

/** There are no credential plugins, and one connection to the API server. */
function registerTransports(registry: MetricRegistry, count: number): void {
  registry
    .gauge({
      name: "rest_client_exec_plugin_ttl_seconds",
      help:
        "Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the auth exec plugin. The " +
        "value is in seconds until certificate expiry (negative if already expired). If auth exec plugins are unused " +
        "or manage no TLS certificates, the value will be +INF.",
      stability,
    })
    .with()
    .set(Number.POSITIVE_INFINITY);
  registry.histogram(
    {
      name: "rest_client_exec_plugin_certificate_rotation_age",
      help:
        "Histogram of the number of seconds the last auth exec plugin client certificate lived before being rotated. " +
        "If auth exec plugin client certificates are unused, histogram will contain no data.",
      stability,
    },
    CERTIFICATE_AGE_BUCKETS,
  );
  registry
    .gauge({
      name: "rest_client_transport_cache_entries",
      help: "Number of transport entries in the internal cache.",
      stability,
    })
    .with()
    .set(count);
  registry
    .counter({
      name: "rest_client_transport_create_calls_total",
      help:
        "Number of calls to get a new transport, partitioned by the result of the operation hit: obtained from the " +
        "cache, miss: created and added to the cache, uncacheable: created and not cached",
      stability,
      labels: ["result"],
    })
    .with("miss")
    .inc(count);
}
