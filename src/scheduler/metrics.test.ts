import t from "tap";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { PodInfo } from "./cache/pod-info.ts";
import { createSchedulerMetrics } from "./metrics.ts";

t.test("attempts, waits, preemptions and the queue are shown with Kubernetes' names", async (t) => {
  const registry = new MetricRegistry();
  const metrics = createSchedulerMetrics(registry);
  t.match(formatMetrics([registry], "prometheus"), /^scheduler_preemption_attempts_total 0$/m);
  metrics.attemptEnded("scheduled", "default-scheduler", 3, 1);
  metrics.attemptEnded("error", "packer", 3, 1);
  metrics.preemptionAttempted(2);
  metrics.podQueued("backoff", "NodeAdd");
  const queued = {
    info: new PodInfo({ metadata: { name: "p" } }),
    queuedAt: 0,
    sequence: 0,
    attempts: 20,
    firstActiveAt: 0,
    rejectedBy: new Set<string>(),
    pendingOn: new Set<string>(),
    gatedBy: undefined,
  };
  metrics.podScheduled(queued, 50);
  metrics.observeQueue({
    sizes: { active: 1, backoff: 2, unschedulable: 3, gated: 4 },
    rejections: function* () {
      yield ["NodeResourcesFit", "default-scheduler"] as const;
    },
    inFlightCounts: () => new Map([["NodeAdd", 2]]),
  });
  metrics.observeState({ cache: { sizes: { nodes: 3, pods: 5, assumed_pods: 1 } }, bindings: () => 7 });
  metrics.preemptionEnded(false, 20);
  metrics.eventHandled("NodeAdd", 1);
  const text = formatMetrics([registry], "prometheus");
  for (const line of [
    'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1',
    'scheduler_schedule_attempts_total{profile="packer",result="error"} 1',
    "scheduler_scheduling_algorithm_duration_seconds_count 2",
    "scheduler_preemption_attempts_total 1",
    "scheduler_preemption_victims_sum 2",
    'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="backoff"} 1',
    'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1',
    'scheduler_pending_pods{queue="gated"} 4',
    'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1',
    'scheduler_inflight_events{event="NodeAdd"} 2',
    'scheduler_scheduler_cache_size{type="assumed_pods"} 1',
    'scheduler_cache_size{type="nodes"} 3',
    'scheduler_goroutines{operation="binding"} 7',
    'scheduler_preemption_goroutines_execution_total{result="error"} 1',
    'scheduler_event_handling_duration_seconds_count{event="NodeAdd"} 1',
  ]) {
    t.ok(text.includes(line), line);
  }
});
