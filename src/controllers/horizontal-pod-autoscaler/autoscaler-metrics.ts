/** The metrics of the horizontal pod autoscaler, with Kubernetes' names. */
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";

export type ScalingAction = "scale_up" | "scale_down" | "none";
/** `spec`: the autoscaler cannot work as it is written; `internal`: reading or writing failed. */
export type ScalingError = "spec" | "internal" | "none";

export interface AutoscalerMetrics {
  recordReconciliation(action: ScalingAction, error: ScalingError, seconds: number): void;
  /** `type` as in `spec.metrics`. */
  recordMetricComputation(type: string, action: ScalingAction, error: ScalingError, seconds: number): void;
}

export function createAutoscalerMetrics(registry = new MetricRegistry()): AutoscalerMetrics {
  const subsystem = "horizontal_pod_autoscaler_controller";
  const stability = "ALPHA";
  const bounds = exponentialBuckets(0.001, 2, 15);
  const labels = ["action", "error"];
  const metricLabels = [...labels, "metric_type"];
  const reconciliations = registry.counter({
    name: `${subsystem}_reconciliations_total`,
    help: "Syncs of autoscalers by action (scale_down, scale_up, none) and first error (spec, internal, none).",
    stability,
    labels,
  });
  const seconds = registry.histogram(
    {
      name: `${subsystem}_reconciliation_duration_seconds`,
      help: "How long syncs of autoscalers take.",
      stability,
      labels,
    },
    bounds,
  );
  const computations = registry.counter({
    name: `${subsystem}_metric_computation_total`,
    help: "Computations of what single metrics propose.",
    stability,
    labels: metricLabels,
  });
  const computationSeconds = registry.histogram(
    {
      name: `${subsystem}_metric_computation_duration_seconds`,
      help: "How long the computation of what a metric proposes takes.",
      stability,
      labels: metricLabels,
    },
    bounds,
  );
  return {
    recordReconciliation(action, error, duration) {
      reconciliations.with(action, error).inc();
      seconds.with(action, error).observe(duration);
    },
    recordMetricComputation(type, action, error, duration) {
      computations.with(action, error, type).inc();
      computationSeconds.with(action, error, type).observe(duration);
    },
  };
}

export function actionOf(current: number, desired: number): ScalingAction {
  if (desired > current) return "scale_up";
  return desired < current ? "scale_down" : "none";
}
