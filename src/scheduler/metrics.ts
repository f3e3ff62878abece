/** The metrics of the scheduler, with Kubernetes' names. */
import { exponentialBuckets } from "../std/metrics/buckets.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import type { ClusterCache } from "./cache/cluster-cache.ts";
import { FrameworkMetrics } from "./framework/framework-metrics.ts";
import type { VolumeStage } from "./framework/handle.ts";
import type { QueuedPod } from "./queue/queued-pod.ts";
import type { SchedulingQueue } from "./queue/scheduling-queue.ts";

export type AttemptResult = "scheduled" | "unschedulable" | "error";

export interface SchedulerMetrics {
  /** An attempt has ended; `algorithmMs` is the time until the node was selected. */
  attemptEnded(result: AttemptResult, profile: string, attemptMs: number, algorithmMs: number): void;
  /** The pod is bound; `waitedMs` since it was first in the active queue. */
  podScheduled(pod: QueuedPod, waitedMs: number): void;
  preemptionAttempted(victims: number): void;
  /** The victims of a preemption are deleted, or that failed. */
  preemptionEnded(isSuccess: boolean, milliseconds: number): void;
  volumeStageFailed(stage: VolumeStage): void;
  /** The pods that an event concerns have been queued. */
  eventHandled(event: string, milliseconds: number): void;
  readonly framework: FrameworkMetrics;
  podQueued(queue: "active" | "backoff" | "unschedulable", event: string): void;
  /** Shows the numbers of pods that wait. */
  observeQueue(queue: Pick<SchedulingQueue, "sizes" | "rejections" | "inFlightCounts">): void;
  /** Shows the sizes of the cache and how many pods are being bound. */
  observeState(state: { readonly cache: Pick<ClusterCache, "sizes">; readonly bindings: () => number }): void;
}

/** From a millisecond to 16 s. */
const ATTEMPT_SECONDS = exponentialBuckets(0.001, 2, 15);
/** From 10 ms to 1.5 hours. */
const WAIT_SECONDS = exponentialBuckets(0.01, 2, 20);
const ATTEMPTS = exponentialBuckets(1, 2, 5);
const VICTIMS = exponentialBuckets(1, 2, 7);

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
  const podSecondsDeprecated = metrics.histogram(
    {
      name: "scheduler_pod_scheduling_duration_seconds",
      help: "As scheduler_pod_scheduling_sli_duration_seconds.",
      stability: "STABLE",
      labels: ["attempts"],
      deprecatedSince: "1.29.0",
    },
    WAIT_SECONDS,
  );
  const rejections = metrics.gauge({
    name: "scheduler_unschedulable_pods",
    help: "Pods that a plugin rejected in their last attempt; a pod counts for each plugin that did.",
    stability: "ALPHA",
    labels: ["plugin", "profile"],
  });
  const inFlight = metrics.gauge({
    name: "scheduler_inflight_events",
    help: "Events that are kept for pods in scheduling, by name, and these pods (PodPopped).",
    stability: "ALPHA",
    labels: ["event"],
  });
  // The first one is deprecated.
  const cacheSizes = ["scheduler_scheduler_cache_size", "scheduler_cache_size"].map((name) =>
    metrics.gauge({ name, help: "Nodes, pods and assumed pods in the cache.", stability: "ALPHA", labels: ["type"] }),
  );
  const running = metrics.gauge({
    name: "scheduler_goroutines",
    help: "Operations in progress, such as binding.",
    stability: "ALPHA",
    labels: ["operation"],
  });
  const eventSeconds = metrics.histogram(
    {
      name: "scheduler_event_handling_duration_seconds",
      help: "How long it takes to queue the pods that an event concerns.",
      stability: "ALPHA",
      labels: ["event"],
    },
    exponentialBuckets(0.0001, 2, 12),
  );
  const preemptionSeconds = metrics.histogram(
    {
      name: "scheduler_preemption_goroutines_duration_seconds",
      help: "How long the deletion of a preemption's victims takes.",
      stability: "ALPHA",
      labels: ["result"],
    },
    WAIT_SECONDS,
  );
  const preemptionRuns = metrics.counter({
    name: "scheduler_preemption_goroutines_execution_total",
    help: "Preemptions whose victims were deleted, or could not be.",
    stability: "ALPHA",
    labels: ["result"],
  });
  const volumeFailures = metrics.counter({
    name: "scheduler_volume_scheduling_stage_error_total",
    help: "Failures of the search for volumes (predicate) and of their binding (bind).",
    stability: "ALPHA",
    labels: ["operation"],
  });
  // Nothing counts here since Kubernetes 1.21, which has the metric all the same.
  metrics.counter({
    name: "scheduler_volume_binder_cache_requests_total",
    help: "Requests of a cache of volume bindings, which does not exist.",
    stability: "ALPHA",
    labels: ["operation"],
  });
  // Families without labels are shown from the start, as in Kubernetes.
  for (const family of [algorithmSeconds, podAttempts, preemptions, victims]) family.with();
  // No plugin of this scheduler makes pods wait for a permit.
  metrics.histogram(
    {
      name: "scheduler_permit_wait_duration_seconds",
      help: "How long pods wait for a permit.",
      stability: "ALPHA",
      labels: ["result"],
    },
    ATTEMPT_SECONDS,
  );
  return {
    framework: new FrameworkMetrics(metrics),
    attemptEnded(result, profile, attemptMs, algorithmMs) {
      attempts.with(result, profile).inc();
      attemptSeconds.with(result, profile).observe(attemptMs / 1000);
      algorithmSeconds.with().observe(algorithmMs / 1000);
    },
    podScheduled(pod, waitedMs) {
      podAttempts.with().observe(pod.attempts);
      // As upstream, so that the number of series is bounded.
      const label = pod.attempts >= 15 ? "15+" : String(pod.attempts);
      podSeconds.with(label).observe(waitedMs / 1000);
      podSecondsDeprecated.with(label).observe(waitedMs / 1000);
    },
    preemptionAttempted(count) {
      preemptions.with().inc();
      victims.with().observe(count);
    },
    preemptionEnded(isSuccess, milliseconds) {
      const result = isSuccess ? "success" : "error";
      preemptionRuns.with(result).inc();
      preemptionSeconds.with(result).observe(milliseconds / 1000);
    },
    volumeStageFailed(stage) {
      volumeFailures.with(stage).inc();
    },
    eventHandled(event, milliseconds) {
      eventSeconds.with(event).observe(milliseconds / 1000);
    },
    podQueued(queue, event) {
      incoming.with(queue, event).inc();
    },
    observeQueue(queue) {
      metrics.onCollect(() => {
        for (const [name, size] of Object.entries(queue.sizes)) pending.with(name).set(size);
        rejections.reset();
        for (const [plugin, profile] of queue.rejections()) rejections.with(plugin, profile).inc();
        inFlight.reset();
        for (const [event, count] of queue.inFlightCounts()) inFlight.with(event).set(count);
      });
    },
    observeState({ cache, bindings }) {
      metrics.onCollect(() => {
        for (const [type, size] of Object.entries(cache.sizes)) {
          for (const each of cacheSizes) each.with(type).set(size);
        }
        running.with("binding").set(bindings());
      });
    },
  };
}
