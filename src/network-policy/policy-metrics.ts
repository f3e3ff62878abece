/** Metrics of the enforcement of network policies. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";

/** 1 ms to 16 s. */
const SECONDS = Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index);

export interface PolicyMetrics {
  synced(seconds: number): void;
  failed(): void;
}

export function createPolicyMetrics(registry: MetricRegistry, clock: Clock): PolicyMetrics {
  const durations = registry.histogram(
    {
      name: "svc_network_policy_sync_duration_seconds",
      help: "Time from a change of policies or pods to the rules in the kernel",
      labels: [],
    },
    SECONDS,
  );
  const last = registry.gauge({
    name: "svc_network_policy_sync_last_timestamp_seconds",
    help: "The last time the rules of network policies were updated",
    labels: [],
  });
  const failures = registry.counter({
    name: "svc_network_policy_sync_failures_total",
    help: "Failed updates of the rules of network policies",
    labels: [],
  });
  return {
    synced(seconds) {
      durations.with().observe(seconds);
      last.with().set(clock.now() / 1000);
    },
    failed: () => failures.with().inc(),
  };
}
