/** The metrics of the job controller, with Kubernetes' names. */
import type { Job, PodFailurePolicyRule } from "../../api/batch/job/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { hasTrackingFinalizer, replacesOnlyFailedPods } from "./pod-failures.ts";

/** `reconciling` waits for expected changes or ends the job; `tracking` had no pods to create or delete. */
export type SyncAction = "reconciling" | "tracking" | "pods_created" | "pods_deleted";
export type Outcome = "succeeded" | "failed";

export interface JobMetrics {
  recordSync(job: Job, action: SyncAction, isSuccess: boolean, seconds: number): void;
  /** The job has its terminal condition, for this reason. */
  recordJobEnd(job: Job, outcome: Outcome, reason: string): void;
  /** Pods that the counters of the job's status include now. */
  recordFinishedPods(job: Job, outcome: Outcome, count: number): void;
  recordFinishedIndexes(job: Job, outcome: Outcome, count: number): void;
  recordFailureAction(action: PodFailurePolicyRule["action"]): void;
  recordPodCreation(job: Job, isReplacement: boolean, isSuccess: boolean): void;
  recordExternalJob(controller: string): void;
  /** Counts finished pods that get or lose their finalizer; `undefined`: the pod does not exist. */
  recordPodChange(before: Pod | undefined, after: Pod | undefined): void;
}

export function createJobMetrics(registry = new MetricRegistry()): JobMetrics {
  const subsystem = "job_controller";
  const syncSeconds = registry.histogram(
    {
      name: `${subsystem}_job_sync_duration_seconds`,
      help: "How long syncs of jobs take.",
      stability: "STABLE",
      labels: ["completion_mode", "result", "action"],
    },
    exponentialBuckets(0.004, 2, 15),
  );
  const syncs = registry.counter({
    name: `${subsystem}_job_syncs_total`,
    help: "Syncs of jobs.",
    stability: "STABLE",
    labels: ["completion_mode", "result", "action"],
  });
  const finished = registry.counter({
    name: `${subsystem}_jobs_finished_total`,
    help: "Finished jobs.",
    stability: "STABLE",
    labels: ["completion_mode", "result", "reason"],
  });
  const pods = registry.counter({
    name: `${subsystem}_job_pods_finished_total`,
    help: "Finished pods that the status of their job counts.",
    stability: "STABLE",
    labels: ["completion_mode", "result"],
  });
  const failures = registry.counter({
    name: `${subsystem}_pod_failures_handled_by_failure_policy_total`,
    help: "Failed pods that a rule of the pod failure policy matched, by the action of the rule.",
    stability: "ALPHA",
    labels: ["action"],
  });
  const tracked = registry.counter({
    name: `${subsystem}_terminated_pods_tracking_finalizer_total`,
    help: "Finished pods with the finalizer batch.kubernetes.io/job-tracking: when they came (add) and went (delete).",
    stability: "ALPHA",
    labels: ["event"],
  });
  const indexes = registry.counter({
    name: `${subsystem}_job_finished_indexes_total`,
    help: "Finished indexes of indexed jobs; backoffLimit is perIndex or global.",
    stability: "ALPHA",
    labels: ["status", "backoffLimit"],
  });
  const creations = registry.counter({
    name: `${subsystem}_job_pods_creation_total`,
    help: "Pods created, by why (new, recreate_terminating_or_failed, recreate_failed) and result.",
    stability: "ALPHA",
    labels: ["reason", "status"],
  });
  const external = registry.counter({
    name: `${subsystem}_jobs_by_external_controller_total`,
    help: "Jobs that another controller manages.",
    stability: "ALPHA",
    labels: ["controller_name"],
  });
  const modeOf = ({ spec }: Job): string => spec?.completionMode ?? "NonIndexed";
  return {
    recordSync(job, action, isSuccess, seconds) {
      const result = isSuccess ? "success" : "error";
      syncs.with(modeOf(job), result, action).inc();
      syncSeconds.with(modeOf(job), result, action).observe(seconds);
    },
    recordJobEnd(job, outcome, reason) {
      finished.with(modeOf(job), outcome, reason).inc();
    },
    recordFinishedPods(job, outcome, count) {
      if (count > 0) pods.with(modeOf(job), outcome).inc(count);
    },
    recordFinishedIndexes(job, outcome, count) {
      const limit = job.spec?.backoffLimitPerIndex === undefined ? "global" : "perIndex";
      if (count > 0) indexes.with(outcome, limit).inc(count);
    },
    recordFailureAction(action) {
      failures.with(action).inc();
    },
    recordPodCreation(job, isReplacement, isSuccess) {
      const replacement = replacesOnlyFailedPods(job) ? "recreate_failed" : "recreate_terminating_or_failed";
      creations.with(isReplacement ? replacement : "new", isSuccess ? "succeeded" : "failed").inc();
    },
    recordExternalJob(controller) {
      external.with(controller).inc();
    },
    recordPodChange(before, after) {
      const was = isFinishedAndTracked(before);
      const is = isFinishedAndTracked(after);
      if (was !== is) tracked.with(is ? "add" : "delete").inc();
    },
  };
}

function isFinishedAndTracked(pod: Pod | undefined): boolean {
  if (pod === undefined || !hasTrackingFinalizer(pod)) return false;
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}
