/** The metrics of the scheduler, with Kubernetes' names. */
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { QueuedPod } from "./queue/queued-pod.ts";
import type { SchedulingQueue } from "./queue/scheduling-queue.ts";

export type AttemptResult = "scheduled" | "unschedulable" | "error";

export interface SchedulerMetrics {
  /** An attempt has ended; `algorithmMs` is the time until the node was selected. */
  attemptEnded(result: AttemptResult, profile: string, attemptMs: number, algorithmMs: number): void;
  /** The pod is bound; `waitedMs` since it was first in the active queue. */
  podScheduled(pod: QueuedPod, waitedMs: number): void;
  preemptionAttempted(victims: number): void;
  podQueued(queue: "active" | "backoff" | "unschedulable", event: string): void;
  /** Shows the numbers of pods that wait. */
  observeQueue(queue: Pick<SchedulingQueue, "sizes">): void;
}

/** From a millisecond to 16 s. */
const ATTEMPT_SECONDS = powersOfTwo(0.001, 15);
/** From 10 ms to 1.5 hours. */
const WAIT_SECONDS = powersOfTwo(0.01, 20);
const ATTEMPTS = powersOfTwo(1, 5);
const VICTIMS = powersOfTwo(1, 7);

export function createSchedulerMetrics(metrics: MetricRegistry): SchedulerMetrics {
  const attempts = metrics.counter({
    name: "scheduler_schedule_attempts_total",
    help: "Attempts to schedule pods by result: scheduled, unschedulable (no node fits), error (the scheduler failed).",
    stability: "STABLE",
    labels: ["result", "profile"],
  });
  const attemptSeconds = metrics.histogram(
    {
      name: "scheduler_scheduling_attempt_duration_seconds",
      help: "Duration of attempts: selection of the node and binding.",
      stability: "STABLE",
      labels: ["result", "profile"],
    },
    ATTEMPT_SECONDS,
  );
  const algorithmSeconds = metrics.histogram(
    {
      name: "scheduler_scheduling_algorithm_duration_seconds",
      help: "Duration of the selection of nodes.",
      stability: "ALPHA",
    },
    ATTEMPT_SECONDS,
  );
  const podAttempts = metrics.histogram(
    {
      name: "scheduler_pod_scheduling_attempts",
      help: "Attempts until a pod was scheduled.",
      stability: "STABLE",
    },
    ATTEMPTS,
  );
  const podSeconds = metrics.histogram(
    {
      name: "scheduler_pod_scheduling_sli_duration_seconds",
      help: "Time from the arrival of a pod in the queue to its binding; may include several attempts.",
      stability: "BETA",
      labels: ["attempts"],
    },
    WAIT_SECONDS,
  );
  const preemptions = metrics.counter({
    name: "scheduler_preemption_attempts_total",
    help: "Preemptions that deleted pods.",
    stability: "STABLE",
  });
  const victims = metrics.histogram(
    { name: "scheduler_preemption_victims", help: "Pods that each preemption deleted.", stability: "STABLE" },
    VICTIMS,
  );
  const incoming = metrics.counter({
    name: "scheduler_queue_incoming_pods_total",
    help: "Pods that were added to a queue by the event that caused it.",
    stability: "STABLE",
    labels: ["queue", "event"],
  });
  const pending = metrics.gauge({
    name: "scheduler_pending_pods",
    help: "Pods that wait: active (to be scheduled now), backoff, unschedulable, gated.",
    stability: "STABLE",
    labels: ["queue"],
  });
  return {
    attemptEnded(result, profile, attemptMs, algorithmMs) {
      attempts.with(result, profile).inc();
      attemptSeconds.with(result, profile).observe(attemptMs / 1000);
      algorithmSeconds.with().observe(algorithmMs / 1000);
    },
    podScheduled(pod, waitedMs) {
      podAttempts.with().observe(pod.attempts);
      // As upstream, so that the number of series is bounded.
      podSeconds.with(pod.attempts >= 15 ? "15+" : String(pod.attempts)).observe(waitedMs / 1000);
    },
    preemptionAttempted(count) {
      preemptions.with().inc();
      victims.with().observe(count);
    },
    podQueued(queue, event) {
      incoming.with(queue, event).inc();
    },
    observeQueue(queue) {
      metrics.onCollect(() => {
        for (const [name, size] of Object.entries(queue.sizes)) pending.with(name).set(size);
      });
    },
  };
}

function powersOfTwo(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => first * 2 ** index);
}
