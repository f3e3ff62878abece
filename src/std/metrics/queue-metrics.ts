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
  /** `running` returns for how many seconds each key has been worked on. Disposing ends the observation. */
  observeRunning(running: () => readonly number[]): Disposable;
}

/** Powers of ten, multiplied as Kubernetes does, so that the text of `le` is the same. */
const SECONDS = Array.from({ length: 9 }).reduce<number[]>((bounds) => [...bounds, bounds.at(-1)! * 10], [1e-8]);

/** Registers the families of Kubernetes' work queues; the result returns the metrics of a queue by its name. */
export function createQueueMetrics(registry: MetricRegistry): (name: string) => QueueMetrics {
  const stability = "ALPHA" as const;
  const labels = ["name"];
  const depth = registry.gauge({ name: "workqueue_depth", help: "Current depth of workqueue", stability, labels });
  const adds = registry.counter({
    name: "workqueue_adds_total",
    help: "Total number of adds handled by workqueue",
    stability,
    labels,
  });
  const retries = registry.counter({
    name: "workqueue_retries_total",
    help: "Total number of retries handled by workqueue",
    stability,
    labels,
  });
  const waited = registry.histogram(
    {
      name: "workqueue_queue_duration_seconds",
      help: "How long in seconds an item stays in workqueue before being requested.",
      stability,
      labels,
    },
    SECONDS,
  );
  const worked = registry.histogram(
    {
      name: "workqueue_work_duration_seconds",
      help: "How long in seconds processing an item from workqueue takes.",
      stability,
      labels,
    },
    SECONDS,
  );
  const unfinished = registry.gauge({
    name: "workqueue_unfinished_work_seconds",
    help:
      "How many seconds of work has done that is in progress and hasn't been observed by " +
      "work_duration. Large values indicate stuck threads. One can deduce the number of stuck " +
      "threads by observing the rate at which this increases.",
    stability,
    labels,
  });
  const longest = registry.gauge({
    name: "workqueue_longest_running_processor_seconds",
    help: "How many seconds has the longest running processor for workqueue been running.",
    stability,
    labels,
  });
  const observed = new Set<{ readonly name: string; readonly running: () => readonly number[] }>();
  registry.onCollect(() => {
    for (const [name, queues] of Map.groupBy(observed, (each) => each.name)) {
      const seconds = queues.flatMap(({ running }) => running());
      unfinished.with(name).set(seconds.reduce((sum, each) => sum + each, 0));
      longest.with(name).set(Math.max(0, ...seconds));
    }
  });
  return (name) => ({
    depth: depth.with(name),
    adds: adds.with(name),
    retries: retries.with(name),
    queueDuration: waited.with(name),
    workDuration: worked.with(name),
    observeRunning(running) {
      const queue = { name, running };
      observed.add(queue);
      return { [Symbol.dispose]: () => void observed.delete(queue) };
    },
  });
}
