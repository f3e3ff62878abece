/** How long changes of the pods' status take to reach the API server, with the name of kubelet's metric. */
import type { Histogram, MetricRegistry } from "../../std/metrics/metrics.ts";

const BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];

export function createStatusHistogram(registry: MetricRegistry): Histogram {
  const name = "kubelet_pod_status_sync_duration_seconds";
  const help =
    "Duration in seconds to sync a pod status update. Measures time from detection of a change to pod status until " +
    "the API is successfully updated for that pod, even if multiple intevening changes to pod status occur.";
  return registry.histogram({ name, help, stability: "ALPHA" }, BUCKETS).with();
}
