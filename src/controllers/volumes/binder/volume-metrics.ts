/** Kubernetes' metrics of volumes and claims, computed when they are read. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Counter, MetricRegistry } from "../../../std/metrics/metrics.ts";

const stability = "ALPHA" as const;

export interface BinderMetrics {
  /** Claims that got the default class after their creation. */
  readonly defaultClassAssigned: Counter;
  readonly defaultClassErrors: Counter;
}

export function registerBinderMetrics(
  registry: MetricRegistry,
  volumes: () => Iterable<PersistentVolume>,
  claims: () => Iterable<PersistentVolumeClaim>,
): BinderMetrics {
  registerVolumeCounts(registry, volumes);
  registerClaimCounts(registry, claims);
  const counter = (name: string, help: string): Counter => registry.counter({ name, help, stability }).with();
  return {
    defaultClassAssigned: counter(
      "retroactive_storageclass_total",
      "Claims without a class that were given the default class after their creation.",
    ),
    defaultClassErrors: counter(
      "retroactive_storageclass_errors_total",
      "Failures to give the default class to claims that were created without one.",
    ),
  };
}

function registerVolumeCounts(registry: MetricRegistry, volumes: () => Iterable<PersistentVolume>): void {
  const labels = ["storage_class"];
  const gauge = (name: string, help: string, own: readonly string[] = labels) =>
    registry.gauge({ name, help, stability, labels: own });
  const bound = gauge("pv_collector_bound_pv_count", "Number of volumes that are bound.");
  const unbound = gauge("pv_collector_unbound_pv_count", "Number of volumes that are not bound.");
  const total = gauge("pv_collector_total_pv_count", "Number of volumes.", ["plugin_name", "volume_mode"]);
  registry.onCollect(() => {
    for (const family of [bound, unbound, total]) family.clear();
    for (const volume of volumes()) {
      (volume.status?.phase === "Bound" ? bound : unbound).with(storageClassNameOf(volume)).inc();
      total.with(pluginNameOf(volume), volume.spec?.volumeMode ?? "Filesystem").inc();
    }
  });
}

function registerClaimCounts(registry: MetricRegistry, claims: () => Iterable<PersistentVolumeClaim>): void {
  const labels = ["namespace", "storage_class", "volume_attributes_class"];
  const gauge = (name: string, help: string) => registry.gauge({ name, help, stability, labels });
  const bound = gauge("pv_collector_bound_pvc_count", "Number of claims that are bound.");
  const unbound = gauge("pv_collector_unbound_pvc_count", "Number of claims that are not bound.");
  registry.onCollect(() => {
    for (const family of [bound, unbound]) family.clear();
    for (const claim of claims()) {
      const { metadata, spec, status } = claim;
      const values = [storageClassNameOf(claim), spec?.volumeAttributesClassName ?? ""];
      (status?.phase === "Bound" ? bound : unbound).with(metadata?.namespace ?? "", ...values).inc();
    }
  });
}

/** The plugins that Kubernetes' binder has; `N/A` for all others. */
function pluginNameOf({ spec }: PersistentVolume): string {
  if (spec?.hostPath !== undefined) return "kubernetes.io/host-path";
  if (spec?.nfs !== undefined) return "kubernetes.io/nfs";
  return spec?.local === undefined ? "N/A" : "kubernetes.io/local-volume";
}
