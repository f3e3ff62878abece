import type { Counter, Gauge, Histogram, MetricRegistry } from "./metrics.ts";

/** The metrics of one work queue. */
export interface QueueMetrics {
  readonly depth: Gauge;
  readonly adds: Counter;
  readonly retries: Counter;
  /** How long keys were queued. */
  readonly queueDuration: Histogram;
  /** How long the work took. */
  readonly workDuration: Histogram;
}

/** Powers of ten, multiplied as Kubernetes does, so that the text of `le` is the same. */
const SECONDS = Array.from({ length: 9 }).reduce<number[]>((bounds) => [...bounds, bounds.at(-1)! * 10], [1e-8]);

/** Registers the families of Kubernetes' work queues; the result returns the metrics of a queue by its name. */
export function createQueueMetrics(registry: MetricRegistry): (name: string) => QueueMetrics {
  const stability = "ALPHA" as const;
  const labels = ["name"];
  const depth = registry.gauge({ name: "workqueue_depth", help: "Current depth of workqueue.", stability, labels });
  const adds = registry.counter({
    name: "workqueue_adds_total",
    help: "Total number of adds handled by workqueue.",
    stability,
    labels,
  });
  const retries = registry.counter({
    name: "workqueue_retries_total",
    help: "Total number of retries handled by workqueue.",
    stability,
    labels,
  });
  const waited = registry.histogram(
    {
      name: "workqueue_queue_duration_seconds",
      help: "How long in seconds a key stays in workqueue before it is worked on.",
      stability,
      labels,
    },
    SECONDS,
  );
  const worked = registry.histogram(
    {
      name: "workqueue_work_duration_seconds",
      help: "How long in seconds the work on a key takes.",
      stability,
      labels,
    },
    SECONDS,
  );
  return (name) => ({
    depth: depth.with(name),
    adds: adds.with(name),
    retries: retries.with(name),
    queueDuration: waited.with(name),
    workDuration: worked.with(name),
  });
}
