/** Metrics with the names that kube-proxy gives them. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { Clock } from "../std/time/clock.ts";

/** 1 ms to 16 s. */
const SECONDS = Array.from({ length: 15 }, (_, index) => 0.001 * 2 ** index);

export interface ProxyMetrics {
  synced(seconds: number): void;
  failed(): void;
}

export function createProxyMetrics(registry: MetricRegistry, clock: Clock): ProxyMetrics {
  const durations = registry.histogram(
    { name: "kubeproxy_sync_proxy_rules_duration_seconds", help: "SyncProxyRules latency in seconds", labels: [] },
    SECONDS,
  );
  const last = registry.gauge({
    name: "kubeproxy_sync_proxy_rules_last_timestamp_seconds",
    help: "The last time proxy rules were successfully synced",
    labels: [],
  });
  const failures = registry.counter({
    name: "kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
    help: "Cumulative proxy nftables sync failures",
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
