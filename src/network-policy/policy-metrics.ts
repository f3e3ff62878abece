/** Metrics of the enforcement of network policies. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { createSyncMetrics, type SyncMetrics } from "../std/nftables/sync-metrics.ts";
import type { Clock } from "../std/time/clock.ts";

export type PolicyMetrics = SyncMetrics;

export function createPolicyMetrics(registry: MetricRegistry, clock: Clock): PolicyMetrics {
  return createSyncMetrics(registry, clock, {
    duration: {
      name: "svc_network_policy_sync_duration_seconds",
      help: "Time from a change of policies or pods to the rules in the kernel",
    },
    last: {
      name: "svc_network_policy_sync_last_timestamp_seconds",
      help: "The last time the rules of network policies were updated",
    },
    failures: {
      name: "svc_network_policy_sync_failures_total",
      help: "Failed updates of the rules of network policies",
    },
  });
}
