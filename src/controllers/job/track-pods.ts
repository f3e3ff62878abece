/** Counts finished pods of a job and removes their finalizers; writes the status in between. */

import { countIndexes } from "../../api/batch/job/indexes.ts";
import { jobKind } from "../../api/batch/job/kind.ts";
import type { UncountedTerminatedPods } from "../../api/batch/job/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { statusCodeOf } from "../api-errors.ts";
import { objectReference } from "../workload/object-keys.ts";
import { settleInBatches } from "../workload/settle-in-batches.ts";
import {
  addIndexes,
  completionIndexOf,
  formatIndexes,
  hasIndex,
  isIndexBelow,
  readIndexes,
} from "./completion-indexes.ts";
import { jobCondition, setCondition, trueCondition } from "./job-conditions.ts";
import type { JobSync, JobSyncDeps } from "./job-state.ts";
import { REMOVE_FINALIZER } from "./manage-pods.ts";
import { hasTrackingFinalizer, isPodFailed, matchFailurePolicy } from "./pod-failures.ts";

/** Bounds `status.uncountedTerminatedPods` to about 20 KB, and the requests of one sync. */
const UNCOUNTED_MAX = 500;

/** `isChanged`: whether the status must be written in any case. */
export async function trackPods(sync: JobSync, isChanged: boolean, deps: JobSyncDeps): Promise<void> {
  const { pods, removed, spec } = sync;
  const withFinalizer = new Set(pods.filter((pod) => isTracked(pod, removed)).map(uidOf));
  const isCleaned = countUncounted(sync, withFinalizer, deps);
  const { counted, succeededIndexes, isComplete } = countPods(sync, deps);
  let isDirty = isChanged || isCleaned || counted.isAdded;
  if (spec.completionMode === "Indexed") isDirty = setIndexes(sync, succeededIndexes, deps) || isDirty;
  if (setInterimCondition(sync, deps.clock.now())) isDirty = true;
  if (isDirty) {
    await writeStatus(sync, deps);
    deps.backoffs.set(sync.key, sync.backoff);
  }
  const error = await removeFinalizers(sync, counted.pods, withFinalizer, deps);
  isDirty = countUncounted(sync, withFinalizer, deps);
  if (error !== undefined) {
    if (isDirty) await writeStatus(sync, deps);
    throw error;
  }
  const isFinished = isComplete && finish(sync);
  if (!isDirty && !isFinished) return;
  await writeStatus(sync, deps);
  if (isFinished) recordEnd(sync, deps);
}

function isTracked(pod: Pod, removed: ReadonlySet<string>): boolean {
  return hasTrackingFinalizer(pod) && !removed.has(uidOf(pod));
}

function uidOf({ metadata }: Pod): string {
  return metadata?.uid ?? "";
}

interface CountedPods {
  readonly pods: readonly Pod[];
  /** Whether the status changed. */
  readonly isAdded: boolean;
}

/** Adds finished pods to `uncountedTerminatedPods`. */
function countPods(
  sync: JobSync,
  { metrics }: JobSyncDeps,
): {
  readonly counted: CountedPods;
  readonly succeededIndexes: readonly number[];
  readonly isComplete: boolean;
} {
  const { job, spec, removed, end, status, previousSucceededIndexes } = sync;
  const isIndexed = spec.completionMode === "Indexed";
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const before = job.status?.uncountedTerminatedPods;
  const known = { succeeded: new Set(before?.succeeded), failed: new Set(before?.failed) };
  const next = { succeeded: [...succeeded], failed: [...failed] };
  const indexes: number[] = [];
  const pods: Pod[] = [];
  let isComplete = true;
  const isValid = (pod: Pod): boolean => !isIndexed || isIndexBelow(pod, spec.completions ?? 0);
  const isFailure = end !== undefined && end.type !== "SuccessCriteriaMet";
  const ordered = isIndexed ? sync.pods.toSorted((a, b) => indexOrLast(a) - indexOrLast(b)) : sync.pods;
  for (const pod of ordered) {
    const hasFailed = isPodFailed(pod, job);
    if (!isTracked(pod, removed) || !mayLoseFinalizer(sync, pod, hasFailed)) continue;
    const uid = uidOf(pod);
    pods.push(pod);
    if (pod.status?.phase === "Succeeded" && !known.failed.has(uid)) {
      const index = completionIndexOf(pod);
      if (!isIndexed) {
        if (!known.succeeded.has(uid)) next.succeeded.push(uid);
      } else if (index !== undefined && isValid(pod) && !hasIndex(previousSucceededIndexes, index)) indexes.push(index);
    } else if ((hasFailed || isFailure) && !known.failed.has(uid) && isValid(pod)) {
      const { action, counts } = matchFailurePolicy(job, pod);
      if (action !== undefined) metrics.recordFailureAction(action);
      if (counts) next.failed.push(uid);
    }
    if (indexes.length + next.succeeded.length + next.failed.length >= UNCOUNTED_MAX) {
      isComplete = false;
      break;
    }
  }
  const isAdded = next.succeeded.length > succeeded.length || next.failed.length > failed.length || indexes.length > 0;
  status.uncountedTerminatedPods = uncounted(next.succeeded, next.failed);
  return { counted: { pods, isAdded }, succeededIndexes: indexes, isComplete };
}

function indexOrLast(pod: Pod): number {
  return completionIndexOf(pod) ?? -1;
}

/** A failed pod of an index keeps its finalizer until its replacement exists. */
function mayLoseFinalizer({ job, end, replaceable }: JobSync, pod: Pod, hasFailed: boolean): boolean {
  if (job.metadata?.deletionTimestamp !== undefined || end !== undefined) return true;
  if (pod.status?.phase === "Succeeded") return true;
  return hasFailed && replaceable.get(completionIndexOf(pod) ?? -1) !== pod;
}

function uncounted(succeeded: readonly string[], failed: readonly string[]): UncountedTerminatedPods {
  return { ...(succeeded.length > 0 ? { succeeded } : {}), ...(failed.length > 0 ? { failed } : {}) };
}

/** Moves uncounted pods that have no finalizer to the counters. */
function countUncounted(
  { job, status }: JobSync,
  withFinalizer: ReadonlySet<string>,
  { metrics }: JobSyncDeps,
): boolean {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const [restSucceeded, restFailed] = [succeeded, failed].map((uids) => uids.filter((uid) => withFinalizer.has(uid)));
  const newSucceeded = succeeded.length - (restSucceeded?.length ?? 0);
  const newFailed = failed.length - (restFailed?.length ?? 0);
  if (newSucceeded === 0 && newFailed === 0) return false;
  metrics.recordFinishedPods(job, "succeeded", newSucceeded);
  metrics.recordFinishedPods(job, "failed", newFailed);
  status.succeeded = (status.succeeded ?? 0) + newSucceeded;
  status.failed = (status.failed ?? 0) + newFailed;
  status.uncountedTerminatedPods = uncounted(restSucceeded ?? [], restFailed ?? []);
  return true;
}

function setIndexes(sync: JobSync, added: readonly number[], { metrics }: JobSyncDeps): boolean {
  const { status, job, spec } = sync;
  sync.succeededIndexes = addIndexes(sync.succeededIndexes, added);
  const completedIndexes = formatIndexes(sync.succeededIndexes);
  const failedIndexes = sync.failedIndexes === undefined ? undefined : formatIndexes(sync.failedIndexes);
  const isChanged = completedIndexes !== (status.completedIndexes ?? "") || failedIndexes !== status.failedIndexes;
  const known = readIndexes(job.status?.failedIndexes ?? "", spec.completions ?? 0);
  const newFailed = countIndexes(sync.failedIndexes ?? []) - countIndexes(known);
  metrics.recordFinishedIndexes(job, "succeeded", added.length);
  metrics.recordFinishedIndexes(job, "failed", newFailed);
  status.succeeded = countIndexes(sync.succeededIndexes);
  status.completedIndexes = completedIndexes;
  status.failedIndexes = failedIndexes;
  return isChanged;
}

/** Writes why the job ends before finalizers are removed; the terminal condition follows when its pods have ended. */
function setInterimCondition(sync: JobSync, now: number): boolean {
  const { end, status, job } = sync;
  if (end?.type !== "FailureTarget" && end?.type !== "SuccessCriteriaMet") return false;
  const isFailure = end.type === "FailureTarget";
  sync.end = jobCondition(isFailure ? "Failed" : "Complete", end.reason ?? "", end.message ?? "", now);
  if (!isFailure && trueCondition(job, "SuccessCriteriaMet") !== undefined) return false;
  status.conditions = [...(status.conditions ?? []), end];
  return true;
}

async function removeFinalizers(
  { key }: JobSync,
  pods: readonly Pod[],
  withFinalizer: Set<string>,
  { client, finalizers, signal }: JobSyncDeps,
): Promise<unknown> {
  finalizers.expectRemoval(key, pods.map(uidOf));
  const results = await settleInBatches(pods, async (pod) => {
    const { name = "", namespace } = pod.metadata ?? {};
    try {
      await client.patch(podKind, { name, namespace }, "strategic", REMOVE_FINALIZER, { signal });
    } catch (error) {
      // The informer will show no change.
      finalizers.removalObserved(key, uidOf(pod));
      if (statusCodeOf(error) !== 404) throw error;
    }
    withFinalizer.delete(uidOf(pod));
  });
  return results.find((result) => result.status === "rejected")?.reason;
}

/** Sets the terminal condition unless pods are uncounted or terminating. */
function finish(sync: JobSync): boolean {
  const { end, status, terminating } = sync;
  if (end === undefined || terminating > 0 || !deepEqual(status.uncountedTerminatedPods ?? {}, {})) return false;
  status.conditions = setCondition(status.conditions ?? [], end);
  if (end.type === "Complete") status.completionTime = end.lastTransitionTime;
  return true;
}

async function writeStatus(sync: JobSync, { client, signal }: JobSyncDeps): Promise<void> {
  sync.job = await client.updateStatus(jobKind, { ...sync.job, status: sync.status }, signal);
  sync.status = { ...sync.job.status };
}

function recordEnd({ job, spec, end, status }: JobSync, { recorder, metrics }: JobSyncDeps): void {
  const about = objectReference(job);
  metrics.recordJobEnd(job, end?.type === "Complete" ? "succeeded" : "failed", end?.reason ?? "");
  if (end?.type !== "Complete") {
    recorder.record(about, "Warning", end?.reason ?? "", end?.message ?? "");
    return;
  }
  if (spec.completions !== undefined && (status.succeeded ?? 0) > spec.completions) {
    const message = "Too many succeeded pods running after completion count reached";
    recorder.record(about, "Warning", "TooManySucceededPods", message);
  }
  recorder.record(about, "Normal", "Completed", "Job completed");
}
