/** Creation and deletion of a job's pods. */

import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { isUnanswered, statusCodeOf } from "../api-errors.ts";
import { isPodReady, sortForDeletion } from "../workload/active-pods.ts";
import { keyOf } from "../workload/object-keys.ts";
import { settleInBatches } from "../workload/settle-in-batches.ts";
import { slowStart } from "../workload/slow-start.ts";
import { addIndexVariable, failureCount, pendingIndexes, splitDuplicates, templateOfIndex } from "./indexed-jobs.ts";
import { BATCH_MS, type JobSync, type JobSyncDeps } from "./job-state.ts";
import { backoffRemaining } from "./pod-backoff.ts";
import { finishTimeOf, hasTrackingFinalizer, replacesOnlyFailedPods, TRACKING_FINALIZER } from "./pod-failures.ts";

/** The maximum of creations or deletions in one sync. */
const BURST_PODS = 500;
/** Strategic merge patch that removes the tracking finalizer. */
export const REMOVE_FINALIZER = { metadata: { "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER] } };

/** Deletes all active pods of a job that ends. They keep their finalizer until they are counted. */
export async function deleteActivePods(
  sync: JobSync,
  { podControl, signal }: JobSyncDeps,
): Promise<{ readonly deleted: number; readonly error: unknown }> {
  return await deleteAll(sync, sync.active, async (pod) => {
    try {
      await podControl.delete(pod, sync.job, signal);
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
    }
  });
}

/** Creates or deletes pods until as many run as wanted; resolves with the first error. */
export async function managePods(sync: JobSync, deps: JobSyncDeps): Promise<unknown> {
  const { spec, job, active } = sync;
  const wanted = wantedPods(sync);
  const surplus = surplusPods(sync, Math.max(0, active.length - wanted), deps.clock.now());
  sync.action = spec.suspend === true || surplus.length > 0 ? "pods_deleted" : "tracking";
  if (surplus.length > 0) return await deletePods(sync, surplus, deps);
  if (spec.suspend === true) return undefined;
  const terminating = replacesOnlyFailedPods(job) ? sync.terminating : 0;
  const missing = Math.min(wanted - terminating - active.length, BURST_PODS);
  return missing > 0 ? await createPods(sync, missing, deps) : undefined;
}

function wantedPods({ spec, succeeded, active }: JobSync): number {
  const { parallelism = 1, completions, suspend } = spec;
  if (suspend === true) return 0;
  // Without completions the first success ends the job; the other pods may finish.
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(completions - succeeded, parallelism));
}

function surplusPods({ spec, active }: JobSync, count: number, now: number): readonly Pod[] {
  const sort = (pods: readonly Pod[]): readonly Pod[] => sortForDeletion(pods, new Map(), now);
  const { surplus, rest } =
    spec.completionMode === "Indexed"
      ? splitDuplicates(active, spec.completions ?? 0, sort)
      : { surplus: [], rest: active };
  const more = count > surplus.length ? sort(rest).slice(0, count - surplus.length) : [];
  const all = [...surplus, ...more];
  return spec.suspend === true ? all : all.slice(0, BURST_PODS);
}

/** These pods are not counted as failed, so they lose their finalizer first. */
async function deletePods(sync: JobSync, pods: readonly Pod[], deps: JobSyncDeps): Promise<unknown> {
  const { key, job } = sync;
  const { client, expectations, podControl, signal } = deps;
  expectations.expectDeletions(key, pods.map(keyOf));
  const { error } = await deleteAll(sync, pods, async (pod) => {
    try {
      const { name = "", namespace } = pod.metadata ?? {};
      if (hasTrackingFinalizer(pod)) {
        await client.patch(podKind, { name, namespace }, "strategic", REMOVE_FINALIZER, { signal });
      }
      await podControl.delete(pod, job, signal);
    } catch (error) {
      expectations.deletionObserved(key, keyOf(pod));
      if (statusCodeOf(error) !== 404) throw error;
    }
  });
  return error;
}

async function deleteAll(sync: JobSync, pods: readonly Pod[], deletePod: (pod: Pod) => Promise<void>) {
  const results = await settleInBatches(pods, deletePod);
  const deleted = pods.filter((_, index) => results[index]?.status === "fulfilled");
  sync.activeCount -= deleted.length;
  sync.terminating += deleted.length;
  sync.ready -= deleted.filter(isPodReady).length;
  const failed = results.find((result) => result.status === "rejected");
  return { deleted: deleted.length, error: failed?.reason as unknown };
}

async function createPods(sync: JobSync, missing: number, deps: JobSyncDeps): Promise<unknown> {
  const { spec, key } = sync;
  sync.action = "pods_created";
  const now = deps.clock.now();
  const isPerIndex = spec.backoffLimitPerIndex !== undefined;
  let wait = isPerIndex ? 0 : backoffRemaining(sync.backoff, now);
  let indexes: readonly number[] = [];
  if (wait === 0 && spec.completionMode === "Indexed") {
    const pending = pendingIndexes(sync, missing);
    const waits = pending.map((index) => (isPerIndex ? indexBackoff(sync, index, now) : 0));
    indexes = pending.filter((_, position) => waits[position] === 0);
    if (pending.length > 0 && indexes.length === 0) wait = Math.min(...waits);
  }
  if (wait > 0) {
    deps.requeue(key, Math.max(wait, BATCH_MS));
    // As Kubernetes reports it: pods that run are active again after the delay.
    sync.activeCount = 0;
    return undefined;
  }
  return await createNow(sync, spec.completionMode === "Indexed" ? indexes : undefined, missing, deps);
}

function indexBackoff({ replaceable }: JobSync, index: number, now: number): number {
  const pod = replaceable.get(index);
  if (pod === undefined) return 0;
  return backoffRemaining({ failures: failureCount(pod) + 1, lastFailureAt: finishTimeOf(pod) }, now);
}

async function createNow(
  sync: JobSync,
  indexes: readonly number[] | undefined,
  missing: number,
  { expectations, unconfirmed, podControl, metrics, signal }: JobSyncDeps,
): Promise<unknown> {
  const { key, job, spec } = sync;
  const count = indexes?.length ?? missing;
  const { metadata } = spec.template;
  const finalizers = [...new Set([...(metadata?.finalizers ?? []), TRACKING_FINALIZER])];
  const tracked = { ...spec.template, metadata: { ...metadata, finalizers } };
  const template = indexes === undefined ? tracked : addIndexVariable(tracked);
  const rest = [...(indexes ?? [])];
  expectations.expectCreations(key, count);
  const create = async (index: number | undefined): Promise<void> => {
    if (index === undefined) return await podControl.create(template, job, signal);
    const one = templateOfIndex(template, index, sync);
    await podControl.create(one.template, job, signal, one.generateName);
  };
  const { failed = 0 } = sync.status;
  const isReplacement = failed > 0 || sync.terminating > 0;
  const { successes, error } = await slowStart(count, async () => {
    let isCreated = false;
    try {
      await create(rest.shift());
      isCreated = true;
    } catch (error) {
      if (isUnanswered(error)) unconfirmed.add(key);
      throw error;
    } finally {
      metrics.recordPodCreation(job, isReplacement, isCreated);
    }
  });
  for (let skipped = successes; skipped < count; skipped++) expectations.creationObserved(key);
  sync.activeCount += successes;
  return error;
}
