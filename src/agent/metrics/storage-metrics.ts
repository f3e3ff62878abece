/** Metrics of operations on volumes, with the names and labels of kubelet's. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { VolumeObserver } from "../volumes/volume-manager.ts";
import { findPlugin } from "./volume-metrics.ts";

const OPERATION_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export function createStorageMetrics(registry: MetricRegistry): VolumeObserver {
  const stability = "ALPHA";
  const operations = registry.histogram(
    {
      name: "storage_operation_duration_seconds",
      help: "Storage operation duration",
      stability,
      labels: ["volume_plugin", "operation_name", "status", "migrated"],
    },
    OPERATION_SECONDS,
  );
  const totals = registry.histogram(
    {
      name: "volume_operation_total_seconds",
      help: "Storage operation end to end duration in seconds",
      stability,
      labels: ["plugin_name", "operation_name"],
    },
    OPERATION_SECONDS,
  );
  return {
    onOperation(volume, operation, hasFailed, seconds) {
      const status = hasFailed ? "fail-unknown" : "success";
      operations.with(findPlugin(volume), operation, status, "false").observe(seconds);
    },
    onSetUp: (volume, seconds) => totals.with(findPlugin(volume), "volume_mount").observe(seconds),
  };
}
