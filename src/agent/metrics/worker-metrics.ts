/** Metrics of the work on pods, with the names and labels of kubelet's. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { PodWorkMetrics, SyncOperation } from "../pods/pod-context.ts";
import { secondsBuckets } from "./buckets.ts";

const stability = "ALPHA";

export function createWorkerMetrics(registry: MetricRegistry): PodWorkMetrics {
  const syncs = registry.histogram(
    {
      name: "kubelet_pod_worker_duration_seconds",
      help: "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync",
      stability,
      labels: ["operation_type"],
    },
    secondsBuckets,
  );
  const starts = registry
    .histogram(
      {
        name: "kubelet_pod_worker_start_duration_seconds",
        help: "Duration in seconds from kubelet seeing a pod to starting a worker.",
        stability,
      },
      secondsBuckets,
    )
    .with();
  const rejections = registry.counter({
    name: "kubelet_admission_rejections_total",
    help: "Cumulative number pod admission rejections by the Kubelet.",
    stability,
    labels: ["reason"],
  });
  const count = (name: string, help: string) => registry.counter({ name, help, stability }).with();
  const fallbacks = count(
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "The number of times lifecycle handlers successfully fell back to http from https.",
  );
  const endedSleeps = count(
    "kubelet_sleep_action_terminated_early_total",
    "The number of times lifecycle sleep handler got terminated before it finishes",
  );
  return {
    onWorkerStart: (seconds) => starts.observe(seconds),
    onSync: (operation: SyncOperation, seconds) => syncs.with(operation).observe(seconds),
    onRejected: (reason) => rejections.with(reason).inc(),
    onHookFallback: () => fallbacks.inc(),
    onSleepHookEndedEarly: () => endedSleeps.inc(),
  };
}
