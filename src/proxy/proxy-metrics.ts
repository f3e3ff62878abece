/** Metrics with the names that kube-proxy gives them. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { createSyncMetrics, SYNC_SECONDS, type SyncMetrics } from "../std/nftables/sync-metrics.ts";
import type { Clock } from "../std/time/clock.ts";
import type { PortsWithoutLocal } from "./frontends.ts";

export interface ProxyMetrics extends Pick<SyncMetrics, "recordFailure"> {
  /** A change of a service that the next sync writes. */
  recordServiceChange(): void;
  /**
   * The same of an EndpointSlice. `triggeredAt`: when the pod or service changed that it follows, in milliseconds since
   * 1970; undefined when that is unknown.
   */
  recordEndpointChange(triggeredAt: number | undefined): void;
  /** The changes so far are about to be written; those of a sync that failed are written by the next. */
  recordSyncStart(): void;
  /** The changes before the start are in the kernel. `isFull`: the sync replaced the whole tables. */
  recordSync(seconds: number, isFull: boolean, withoutLocal: PortsWithoutLocal): void;
}

export type HealthPath = "/healthz" | "/livez";

const PREFIX = "kubeproxy_sync_proxy_rules_";
/** From the change of a pod to the rules: fine up to a minute, then up to five. */
const PROGRAMMING_SECONDS = [0.25, 0.5, ...steps(1, 60, 1), ...steps(65, 120, 5), ...steps(150, 300, 30)];
/** Changes between two syncs whose latency is observed; the others only count. */
const PENDING_TRIGGERS_MAX = 10_000;

export function createProxyMetrics(registry: MetricRegistry, clock: Clock): ProxyMetrics {
  const startedAt = clock.now();
  const syncs = createSyncMetrics(registry, clock, {
    duration: { name: `${PREFIX}duration_seconds`, help: "SyncProxyRules latency in seconds" },
    last: { name: `${PREFIX}last_timestamp_seconds`, help: "The last time proxy rules were successfully synced" },
    failures: { name: `${PREFIX}nftables_sync_failures_total`, help: "Cumulative proxy nftables sync failures" },
  });
  const gauge = (name: string, help: string) => registry.gauge({ name: PREFIX + name, help, labels: [] }).with();
  const counter = (name: string, help: string) => registry.counter({ name: PREFIX + name, help, labels: [] }).with();
  const seconds = (name: string, help: string, bounds: readonly number[]) =>
    registry.histogram({ name: `kubeproxy_${name}`, help, labels: [] }, bounds).with();
  const full = seconds(
    "sync_full_proxy_rules_duration_seconds",
    "SyncProxyRules latency in seconds for full resyncs",
    SYNC_SECONDS,
  );
  const partial = seconds(
    "sync_partial_proxy_rules_duration_seconds",
    "SyncProxyRules latency in seconds for partial resyncs",
    SYNC_SECONDS,
  );
  const programming = seconds(
    "network_programming_duration_seconds",
    "In Cluster Network Programming Latency in seconds",
    PROGRAMMING_SECONDS,
  );
  const queued = gauge("last_queued_timestamp_seconds", "The last time a sync of proxy rules was queued");
  const services = counter("service_changes_total", "Cumulative proxy rules Service changes");
  const pendingServices = gauge("service_changes_pending", "Pending proxy rules Service changes");
  const endpoints = counter("endpoint_changes_total", "Cumulative proxy rules Endpoint changes");
  const pendingEndpoints = gauge("endpoint_changes_pending", "Pending proxy rules Endpoint changes");
  const withoutLocal = registry.gauge({
    name: `${PREFIX}no_local_endpoints_total`,
    help: "Number of services with a Local traffic policy and no endpoints",
    labels: ["traffic_policy"],
  });
  let triggers: number[] = [];
  const waiting = { services: 0, endpoints: 0 };
  const syncing = { services: 0, endpoints: 0, triggers: 0 };
  return {
    recordFailure: syncs.recordFailure,
    recordServiceChange() {
      services.inc();
      pendingServices.inc();
      waiting.services++;
      queued.set(clock.now() / 1000);
    },
    recordEndpointChange(triggeredAt) {
      endpoints.inc();
      pendingEndpoints.inc();
      waiting.endpoints++;
      queued.set(clock.now() / 1000);
      // What happened before the start has waited for the proxy, not for the cluster.
      if (triggeredAt === undefined || triggeredAt < startedAt || triggers.length >= PENDING_TRIGGERS_MAX) return;
      triggers.push(triggeredAt);
    },
    recordSyncStart() {
      syncing.services += waiting.services;
      syncing.endpoints += waiting.endpoints;
      syncing.triggers = triggers.length;
      waiting.services = 0;
      waiting.endpoints = 0;
    },
    recordSync(duration, isFull, { internal, external }) {
      syncs.recordSync(duration);
      withoutLocal.with("internal").set(internal);
      withoutLocal.with("external").set(external);
      (isFull ? full : partial).observe(duration);
      for (const triggeredAt of triggers.slice(0, syncing.triggers)) {
        programming.observe(Math.max(0, clock.now() - triggeredAt) / 1000);
      }
      triggers = triggers.slice(syncing.triggers);
      pendingServices.dec(syncing.services);
      pendingEndpoints.dec(syncing.endpoints);
      Object.assign(syncing, { services: 0, endpoints: 0, triggers: 0 });
    },
  };
}

/** Counts the answers to probes by their status. */
export function createHealthMetrics(registry: MetricRegistry): (path: HealthPath, status: number) => void {
  const counter = (name: string) =>
    registry.counter({
      name: `kubeproxy_proxy_${name}_total`,
      help: `Cumulative proxy ${name} HTTP status`,
      labels: ["code"],
    });
  const counters = { "/healthz": counter("healthz"), "/livez": counter("livez") };
  return (path, status) => counters[path].with(String(status)).inc();
}

function steps(from: number, to: number, by: number): readonly number[] {
  return Array.from({ length: (to - from) / by + 1 }, (_, i) => from + i * by);
}
