import type { Counter, Gauge, Histogram, MetricRegistry } from "./metrics.ts";

/** What is recorded of one work queue. */
export interface QueueMetrics {
  readonly depth: Gauge;
  readonly adds: Counter;
  readonly retries: Counter;
  /** How long keys waited for their turn. */
  readonly queueDuration: Histogram;
  /** How long the work took. */
  readonly workDuration: Histogram;
}

/** Ten times as much from one to the next, multiplied as Kubernetes does it: `le` is compared as text. */
const SECONDS = Array.from({ length: 9 }).reduce<number[]>((bounds) => [...bounds, bounds.at(-1)! * 10], [1e-8]);

/** Makes them for queues by name. The families have the names that Kubernetes' controllers give theirs. */
export function createQueueMetrics(registry: MetricRegistry): (name: string) => QueueMetrics {
  const stability = "ALPHA" as const;
  const labels = ["name"];
  const depth = registry.gauge({ name: "workqueue_depth", help: "Keys that wait for their turn.", stability, labels });
  const adds = registry.counter({
    name: "workqueue_adds_total",
    help: "Keys that were queued.",
    stability,
    labels,
  });
  const retries = registry.counter({
    name: "workqueue_retries_total",
    help: "Keys that were queued again because their work failed.",
    stability,
    labels,
  });
  const waited = registry.histogram(
    {
      name: "workqueue_queue_duration_seconds",
      help: "How long keys waited for their turn, in seconds.",
      stability,
      labels,
    },
    SECONDS,
  );
  const worked = registry.histogram(
    {
      name: "workqueue_work_duration_seconds",
      help: "How long the work on a key took, in seconds.",
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
