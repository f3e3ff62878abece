/** The metric of scale downs, which the controllers of replica sets and replication controllers share. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { type Histogram, MetricRegistry } from "../../std/metrics/metrics.ts";
import { isPodReady } from "../workload/active-pods.ts";

const histograms = new WeakMap<MetricRegistry, Histogram>();

export function deletionAgeRatio(registry = new MetricRegistry()): Histogram {
  const known = histograms.get(registry);
  if (known !== undefined) return known;
  const options = {
    name: "replicaset_controller_sorting_deletion_age_ratio",
    help: "Ages of ready pods that a scale down deletes, as multiples of the age of the youngest ready pod.",
    stability: "ALPHA",
  } as const;
  const histogram = registry.histogram(options, exponentialBuckets(0.25, 2, 6)).with();
  histograms.set(registry, histogram);
  return histogram;
}

/** `deleted` are some of the pods. */
export function observeDeletion(ratio: Histogram, pods: readonly Pod[], deleted: readonly Pod[], now: number): void {
  const ageOf = ({ metadata }: Pod): number => now - Date.parse(metadata?.creationTimestamp ?? "");
  const youngest = Math.min(...pods.filter(isPodReady).map(ageOf));
  for (const pod of deleted.filter(isPodReady)) ratio.observe(ageOf(pod) / youngest);
}
