/** Metrics with the names that kube-proxy gives them. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { createSyncMetrics, type SyncMetrics } from "../std/nftables/sync-metrics.ts";
import type { Clock } from "../std/time/clock.ts";

export type ProxyMetrics = SyncMetrics;

export function createProxyMetrics(registry: MetricRegistry, clock: Clock): ProxyMetrics {
  return createSyncMetrics(registry, clock, {
    duration: { name: "kubeproxy_sync_proxy_rules_duration_seconds", help: "SyncProxyRules latency in seconds" },
    last: {
      name: "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
      help: "The last time proxy rules were successfully synced",
    },
    failures: {
      name: "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
      help: "Cumulative proxy nftables sync failures",
    },
  });
}
