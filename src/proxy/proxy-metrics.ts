/** Metrics with the names that kube-proxy gives them. */
import { exponentialBuckets } from "../std/metrics/buckets.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { IpFamily } from "../std/net/ip.ts";
import type { Clock } from "../std/time/clock.ts";
import type { PortsWithoutLocal } from "./frontends.ts";

export interface ProxyMetrics {
  /** A change of a service that the next sync writes. */
  recordServiceChange(): void;
  /**
   * The same of an EndpointSlice. `triggeredAt`: when the pod or service changed that it follows, in milliseconds since
   * 1970; undefined when that is unknown. `family`: of its addresses.
   */
  recordEndpointChange(triggeredAt: number | undefined, family: IpFamily | undefined): void;
  /** The changes so far are about to be written; those of a sync that failed are written by the next. */
  recordSyncStart(): void;
  /** The rules of a family are in the kernel. `isFull`: the sync replaced the whole table. */
  recordFamilySync(family: IpFamily, seconds: number, isFull: boolean, withoutLocal: PortsWithoutLocal): void;
  recordFamilyFailure(family: IpFamily): void;
  /** The changes before the start are in the kernel. */
  recordSync(): void;
  /** Flows of a family that led nowhere were deleted. */
  recordDeletedFlows(family: IpFamily, seconds: number, count: number): void;
}

export type HealthPath = "/healthz" | "/livez";

const PREFIX = "kubeproxy_sync_proxy_rules_";
/** 1 ms to 16 s. */
const SYNC_SECONDS = exponentialBuckets(0.001, 2, 15);
/** From the change of a pod to the rules: fine up to a minute, then up to five. */
const PROGRAMMING_SECONDS = [0.25, 0.5, ...steps(1, 60, 1), ...steps(65, 120, 5), ...steps(150, 300, 30)];
/** Changes between two syncs whose latency is observed; the others only count. */
const PENDING_TRIGGERS_MAX = 10_000;
const FAMILIES = ["IPv4", "IPv6"] as const;
const stability = "ALPHA";

export function createProxyMetrics(registry: MetricRegistry, clock: Clock): ProxyMetrics {
  const startedAt = clock.now();
  const labels = ["ip_family"];
  const gauge = (name: string, help: string) =>
    registry.gauge({ name: PREFIX + name, help, stability, labels: [] }).with();
  const counter = (name: string, help: string) =>
    registry.counter({ name: PREFIX + name, help, stability, labels: [] }).with();
  const familyGauge = (name: string, help: string) => registry.gauge({ name: PREFIX + name, help, stability, labels });
  const familyCounter = (name: string, help: string) => {
    const family = registry.counter({ name: `kubeproxy_${name}`, help, stability, labels });
    for (const each of FAMILIES) family.with(each);
    return family;
  };
  const seconds = (name: string, help: string, bounds: readonly number[]) =>
    registry.histogram({ name: `kubeproxy_${name}`, help, stability, labels }, bounds);
  const all = seconds("sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", SYNC_SECONDS);
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
  const reconciled = seconds(
    "conntrack_reconciler_sync_duration_seconds",
    "ReconcileConntrackFlowsLatency latency in seconds",
    SYNC_SECONDS,
  );
  const deleted = familyCounter(
    "conntrack_reconciler_deleted_entries_total",
    "Cumulative conntrack flows deleted by conntrack reconciler",
  );
  const failures = familyCounter(
    "sync_proxy_rules_nftables_sync_failures_total",
    "Cumulative proxy nftables sync failures",
  );
  // Tables are replaced or changed in one transaction, so that there is nothing to clean up afterwards.
  familyCounter("sync_proxy_rules_nftables_cleanup_failures_total", "Cumulative proxy nftables cleanup failures");
  const last = familyGauge("last_timestamp_seconds", "The last time proxy rules were successfully synced");
  const queued = familyGauge("last_queued_timestamp_seconds", "The last time a sync of proxy rules was queued");
  const services = counter("service_changes_total", "Cumulative proxy rules Service changes");
  const pendingServices = gauge("service_changes_pending", "Pending proxy rules Service changes");
  const endpoints = counter("endpoint_changes_total", "Cumulative proxy rules Endpoint changes");
  const pendingEndpoints = gauge("endpoint_changes_pending", "Pending proxy rules Endpoint changes");
  const noLocal = registry.gauge({
    name: `${PREFIX}no_local_endpoints_total`,
    help: "Number of services with a Local traffic policy and no endpoints",
    stability,
    labels: ["traffic_policy", "ip_family"],
  });
  const recordQueued = (): void => {
    for (const family of FAMILIES) queued.with(family).set(clock.now() / 1000);
  };
  let triggers: { readonly at: number; readonly family: IpFamily }[] = [];
  const waiting = { services: 0, endpoints: 0 };
  const syncing = { services: 0, endpoints: 0, triggers: 0 };
  return {
    recordServiceChange() {
      services.inc();
      pendingServices.inc();
      waiting.services++;
      recordQueued();
    },
    recordEndpointChange(at, family) {
      endpoints.inc();
      pendingEndpoints.inc();
      waiting.endpoints++;
      recordQueued();
      // What happened before the start has waited for the proxy, not for the cluster.
      if (at === undefined || family === undefined || at < startedAt || triggers.length >= PENDING_TRIGGERS_MAX) return;
      triggers.push({ at, family });
    },
    recordSyncStart() {
      syncing.services += waiting.services;
      syncing.endpoints += waiting.endpoints;
      syncing.triggers = triggers.length;
      waiting.services = 0;
      waiting.endpoints = 0;
    },
    recordFamilySync(family, duration, isFull, { internal, external }) {
      all.with(family).observe(duration);
      last.with(family).set(clock.now() / 1000);
      noLocal.with("internal", family).set(internal);
      noLocal.with("external", family).set(external);
      (isFull ? full : partial).with(family).observe(duration);
    },
    recordFamilyFailure: (family) => failures.with(family).inc(),
    recordSync() {
      for (const { at, family } of triggers.slice(0, syncing.triggers)) {
        programming.with(family).observe(Math.max(0, clock.now() - at) / 1000);
      }
      triggers = triggers.slice(syncing.triggers);
      pendingServices.dec(syncing.services);
      pendingEndpoints.dec(syncing.endpoints);
      Object.assign(syncing, { services: 0, endpoints: 0, triggers: 0 });
    },
    recordDeletedFlows(family, duration, count) {
      reconciled.with(family).observe(duration);
      deleted.with(family).inc(count);
    },
  };
}

/** Counts the answers to probes by their status. */
export function createHealthMetrics(registry: MetricRegistry): (path: HealthPath, status: number) => void {
  const counter = (name: string) =>
    registry.counter({
      name: `kubeproxy_proxy_${name}_total`,
      help: `Cumulative proxy ${name} HTTP status`,
      stability,
      labels: ["code"],
    });
  const counters = { "/healthz": counter("healthz"), "/livez": counter("livez") };
  return (path, status) => counters[path].with(String(status)).inc();
}

function steps(from: number, to: number, by: number): readonly number[] {
  return Array.from({ length: (to - from) / by + 1 }, (_, i) => from + i * by);
}
