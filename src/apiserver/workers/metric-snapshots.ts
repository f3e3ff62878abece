/** Metrics of several threads as those of one process. */
import {
  type AnyFamily,
  type MetricOptions,
  MetricRegistry,
  type MetricType,
  SHOW_ALL,
} from "../../std/metrics/metrics.ts";

/** Passes between threads. */
export interface FamilySnapshot {
  readonly type: MetricType;
  readonly options: MetricOptions;
  readonly bounds: readonly number[];
  readonly series: readonly SeriesSnapshot[];
}

interface SeriesSnapshot {
  readonly values: readonly string[];
  /** The value of a counter or gauge. */
  readonly value: number;
  /** The counts of a histogram. */
  readonly counts: Float64Array | undefined;
}

/** The families that are shown on `/metrics`, and those on `/metrics/slis`. */
export interface MetricsSnapshot {
  readonly all: readonly FamilySnapshot[];
  readonly slis: readonly FamilySnapshot[];
}

/** Metrics of the process, the cluster or the store: each thread has the same value, or the main thread only. */
const COMMON = new RegExp(
  [
    "^process_",
    "^(?:kubernetes_)?(?:build_info|feature_enabled)$",
    "^registered_metrics_total$",
    "^apiserver_(?:storage_(?:objects|size_bytes|db_total_size_in_bytes)|resource_objects|resource_size_estimate_bytes)$",
    "^etcd_(?:db_total_size_in_bytes|mvcc_db_total_size_in_bytes|server_quota_backend_bytes|server_alarms)$",
    "^(?:etcd_disk_wal_write_bytes_total|apiserver_storage_syncs_total|kubernetes_healthcheck)$",
    "_timestamp_seconds$",
    "^aggregator_unavailable_apiservice$",
  ].join("|"),
);

export function takeSnapshot(registry: MetricRegistry): readonly FamilySnapshot[] {
  return registry.collect().map((family) => ({
    type: family.type,
    options: family.options,
    bounds: "bounds" in family ? family.bounds : [],
    series: family
      .series()
      .map((series) =>
        "value" in series
          ? { values: series.values, value: series.value, counts: undefined }
          : { values: series.values, value: series.sum, counts: series.counts },
      ),
  }));
}

/** Adds the series of all threads; of a gauge that is common to them, shows the largest. */
export function mergeSnapshots(snapshots: readonly (readonly FamilySnapshot[])[]): MetricRegistry {
  const merged = new MetricRegistry(SHOW_ALL);
  const families = new Map<string, AnyFamily>();
  for (const snapshot of snapshots.flat()) {
    const { name } = snapshot.options;
    const family = families.get(name) ?? createFamily(merged, snapshot);
    families.set(name, family);
    for (const { values, value, counts } of snapshot.series) {
      const series = family.with(...values);
      if (!("value" in series)) {
        for (const [index, count] of (counts ?? []).entries()) series.counts[index]! += count;
        series.sum += value;
      } else if (COMMON.test(name)) series.value = Math.max(series.value, value);
      else series.value += value;
    }
  }
  return merged;
}

function createFamily(registry: MetricRegistry, { type, options, bounds }: FamilySnapshot): AnyFamily {
  if (type === "histogram") return registry.histogram(options, bounds);
  return type === "gauge" ? registry.gauge(options) : registry.counter(options);
}
