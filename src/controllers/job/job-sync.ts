/**
 * One sync of a job. The finalizer of its pods makes counting exact: a finished pod is first written to
 * `status.uncountedTerminatedPods`, then loses its finalizer, then moves to the counters.
 *
 *     claim pods → finished? → create or delete pods → write uncounted pods → remove finalizers → write counters
 */
import { countIndexes } from "../../api/batch/job/indexes.ts";
import type { Job, JobCondition, JobSpec } from "../../api/batch/job/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { formatTime } from "../../schema/value/time.ts";
import { isActive, isPodReady } from "../workload/active-pods.ts";
import { objectReference } from "../workload/object-keys.ts";
import { isIndexBelow } from "./completion-indexes.ts";
import { failedIndexesOf, replaceableFailures, succeededIndexesOf } from "./indexed-jobs.ts";
import { jobCondition, setCondition, trueCondition } from "./job-conditions.ts";
import type { JobSync, JobSyncDeps } from "./job-state.ts";
import { deleteActivePods, managePods } from "./manage-pods.ts";
import { NO_FAILURES, nextBackoffRecord } from "./pod-backoff.ts";
import { hasTrackingFinalizer, isPodFailed, isTerminating, matchFailurePolicy } from "./pod-failures.ts";
import { matchSuccessPolicy } from "./success-policy.ts";
import { trackPods } from "./track-pods.ts";

/** Rejects with the first error of a request; the job is synced again then. */
export async function syncJob(
  key: string,
  job: Job,
  pods: readonly Pod[],
  isSatisfied: boolean,
  deps: JobSyncDeps,
): Promise<void> {
  if (job.spec === undefined) return;
  const { clock } = deps;
  const removed = deps.finalizers.expected(key);
  const status = { ...job.status, uncountedTerminatedPods: job.status?.uncountedTerminatedPods ?? {} };
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods;
  const newSucceeded = uncountedPods(job, pods, removed, succeeded, ({ status }) => status?.phase === "Succeeded");
  const newFailed = uncountedPods(job, pods, removed, failed, (pod) => isPodFailed(pod, job));
  const active = pods.filter(isActive);
  const sync: JobSync = {
    key,
    job,
    spec: job.spec,
    status,
    pods,
    active,
    removed,
    succeeded: (status.succeeded ?? 0) + newSucceeded.length + succeeded.length,
    activeCount: active.length,
    ready: active.filter(isPodReady).length,
    terminating: pods.filter(isTerminating).length,
    end: undefined,
    previousSucceededIndexes: [],
    succeededIndexes: [],
    failedIndexes: undefined,
    replaceable: new Map(),
    backoff: nextBackoffRecord(deps.backoffs.get(key) ?? NO_FAILURES, newSucceeded, newFailed),
    action: "reconciling",
  };
  const began = clock.monotonic();
  let isSuccess = false;
  try {
    await reconcile(sync, newFailed, isSatisfied, deps);
    isSuccess = true;
  } finally {
    deps.metrics.recordSync(job, sync.action, isSuccess, (clock.monotonic() - began) / 1000);
  }
}

async function reconcile(
  sync: JobSync,
  newFailed: readonly Pod[],
  isSatisfied: boolean,
  deps: JobSyncDeps,
): Promise<void> {
  const { job, spec, status } = sync;
  const { clock, recorder } = deps;
  const { failed = [] } = status.uncountedTerminatedPods ?? {};
  if (status.startTime === undefined && spec.suspend !== true) sync.status.startTime = formatTime(clock.now());
  const counted = newFailed.filter((pod) => matchFailurePolicy(job, pod).counts).length;
  sync.end = endOf(sync, (status.failed ?? 0) + counted + failed.length, deps);
  if (spec.completionMode === "Indexed") evaluateIndexes(sync, clock.now());

  let error: unknown;
  let isSuspensionChanged = false;
  if (sync.end !== undefined) {
    const isEnding = sync.active.length;
    const deletion = await deleteActivePods(sync, deps);
    error = deletion.error;
    // Pods may remain that have a finalizer or are not in the cache yet.
    if (deletion.deleted !== isEnding || !isSatisfied) sync.end = undefined;
  } else {
    const isManaged = isSatisfied && job.metadata?.deletionTimestamp === undefined;
    if (isManaged) error = await managePods(sync, deps);
    if (isComplete(sync)) {
      const message = "Reached expected number of succeeded pods";
      sync.end = jobCondition("SuccessCriteriaMet", "CompletionsReached", message, clock.now());
    } else if (isManaged) isSuspensionChanged = setSuspension(sync, clock.now(), recorder);
  }
  const before = job.status;
  const isChanged =
    isSuspensionChanged ||
    sync.activeCount !== (before?.active ?? 0) ||
    sync.ready !== before?.ready ||
    sync.terminating !== before?.terminating;
  sync.status.active = sync.activeCount;
  sync.status.ready = sync.ready;
  sync.status.terminating = sync.terminating;
  await trackPods(sync, isChanged, deps);
  if (error !== undefined) throw error;
}

/** Pods that are not counted yet, with a valid index in indexed jobs. */
function uncountedPods(
  { spec }: Job,
  pods: readonly Pod[],
  removed: ReadonlySet<string>,
  counted: readonly string[],
  filter: (pod: Pod) => boolean,
): readonly Pod[] {
  return pods.filter((pod) => {
    const uid = pod.metadata?.uid ?? "";
    if (!hasTrackingFinalizer(pod) || counted.includes(uid) || removed.has(uid)) return false;
    if (spec?.completionMode === "Indexed" && !isIndexBelow(pod, spec.completions ?? 0)) return false;
    return filter(pod);
  });
}

/** Why the job ends, except for completions and indexes. Sets the timer of its deadline. */
function endOf(sync: JobSync, failed: number, { clock, requeue }: JobSyncDeps): JobCondition | undefined {
  const { job, spec, status, pods, key } = sync;
  const now = clock.now();
  const decided = trueCondition(job, "SuccessCriteriaMet");
  if (decided !== undefined) return decided;
  const failure = trueCondition(job, "FailureTarget");
  if (failure !== undefined) return jobCondition("Failed", failure.reason ?? "", failure.message ?? "", now);
  for (const pod of spec.podFailurePolicy === undefined ? [] : pods) {
    const { message } = isPodFailed(pod, job) ? matchFailurePolicy(job, pod) : {};
    if (message !== undefined) return jobCondition("FailureTarget", "PodFailurePolicy", message, now);
  }
  const limit = spec.backoffLimit ?? 0;
  if (failed > limit || restartsExceed(spec, pods, limit)) {
    return jobCondition("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit", now);
  }
  if (spec.activeDeadlineSeconds === undefined || spec.suspend === true || status.startTime === undefined) {
    return undefined;
  }
  const left = Date.parse(status.startTime) + spec.activeDeadlineSeconds * 1000 - now;
  if (left > 0) {
    requeue(key, left);
    return undefined;
  }
  return jobCondition("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline", now);
}

/** Restarts of containers count towards the limit where the node restarts them. */
function restartsExceed({ template }: JobSpec, pods: readonly Pod[], limit: number): boolean {
  if (template.spec?.restartPolicy !== "OnFailure") return false;
  const restarts = pods
    .filter(({ status }) => status?.phase === "Running" || status?.phase === "Pending")
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

function evaluateIndexes(sync: JobSync, now: number): void {
  const { job, spec, pods } = sync;
  const completions = spec.completions ?? 0;
  const { previous, next } = succeededIndexesOf(job, pods);
  sync.previousSucceededIndexes = previous;
  sync.succeededIndexes = next;
  sync.succeeded = countIndexes(next);
  if (spec.backoffLimitPerIndex !== undefined) {
    sync.failedIndexes = failedIndexesOf(job, pods);
    sync.end ??= indexFailure(sync, sync.succeeded, countIndexes(sync.failedIndexes), now);
    sync.replaceable = replaceableFailures(sync);
  }
  const message = sync.end === undefined ? matchSuccessPolicy(spec.successPolicy, completions, next) : undefined;
  if (message !== undefined) sync.end = jobCondition("SuccessCriteriaMet", "SuccessPolicy", message, now);
}

function indexFailure({ spec }: JobSync, succeeded: number, failed: number, now: number): JobCondition | undefined {
  if (spec.maxFailedIndexes !== undefined && failed > spec.maxFailedIndexes) {
    const message = "Job has exceeded the specified maximal number of failed indexes";
    return jobCondition("FailureTarget", "MaxFailedIndexesExceeded", message, now);
  }
  if (failed === 0 || failed + succeeded < (spec.completions ?? 0)) return undefined;
  return jobCondition("FailureTarget", "FailedIndexes", "Job has failed indexes", now);
}

/** A job without completions is complete when one pod has succeeded and the others have ended. */
function isComplete({ spec, succeeded, activeCount }: JobSync): boolean {
  return activeCount === 0 && (spec.completions === undefined ? succeeded > 0 : succeeded >= spec.completions);
}

/** Returns whether the condition changed. The deadline starts again when the job is resumed. */
function setSuspension(sync: JobSync, now: number, recorder: EventRecorder): boolean {
  const [event, reason, message, value] =
    sync.spec.suspend === true
      ? (["Suspended", "JobSuspended", "Job suspended", "True"] as const)
      : (["Resumed", "JobResumed", "Job resumed", "False"] as const);
  const conditions = sync.status.conditions ?? [];
  const next = setCondition(conditions, jobCondition("Suspended", reason, message, now, value));
  if (next === conditions) return false;
  sync.status.conditions = next;
  if (value === "False") sync.status.startTime = formatTime(now);
  recorder.record(objectReference(sync.job), "Normal", event, message);
  return true;
}
