/** Succeeded and failed indexes of indexed jobs, and what their pods get. */
import type { Job } from "../../api/batch/job/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { isActive } from "../workload/active-pods.ts";
import {
  addIndexes,
  COMPLETION_INDEX,
  completionIndexOf,
  firstMissing,
  hasIndex,
  type Indexes,
  mergeIndexes,
  readIndexes,
} from "./completion-indexes.ts";
import type { JobSync } from "./job-state.ts";
import {
  finishTimeOf,
  hasTrackingFinalizer,
  isPodFailed,
  isTerminating,
  matchFailurePolicy,
  replacesOnlyFailedPods,
} from "./pod-failures.ts";

const FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count";
const INDEX_VARIABLE = "JOB_COMPLETION_INDEX";
/** A label value has at most 63 characters; the server appends five. */
const GENERATE_NAME_MAX = 58;
const INT32_MAX = 2 ** 31 - 1;

/** The indexes in the status, and with those of pods that succeeded since. */
export function succeededIndexesOf({ spec, status }: Job, pods: readonly Pod[]) {
  const completions = spec?.completions ?? 0;
  const previous = readIndexes(status?.completedIndexes ?? "", completions);
  const succeeded = pods.filter((pod) => pod.status?.phase === "Succeeded" && hasTrackingFinalizer(pod));
  return { previous, next: addIndexes(previous, validIndexes(succeeded, completions)) };
}

export function failedIndexesOf(job: Job, pods: readonly Pod[]): Indexes {
  const completions = job.spec?.completions ?? 0;
  const previous = readIndexes(job.status?.failedIndexes ?? "", completions);
  const failed = pods.filter((pod) => hasTrackingFinalizer(pod) && isIndexFailed(job, pod));
  return addIndexes(previous, validIndexes(failed, completions));
}

function isIndexFailed(job: Job, pod: Pod): boolean {
  if (!isPodFailed(pod, job)) return false;
  const { action, counts } = matchFailurePolicy(job, pod);
  if (action === "FailIndex") return true;
  return counts && readCount(pod, FAILURE_COUNT) >= (job.spec?.backoffLimitPerIndex ?? 0);
}

function validIndexes(pods: readonly Pod[], completions: number): readonly number[] {
  return pods.map(completionIndexOf).filter((index) => index !== undefined && index < completions) as number[];
}

/** The last failed pod of each index that has no other pod and has not ended. */
export function replaceableFailures(sync: JobSync): ReadonlyMap<number, Pod> {
  const { job, pods, active, removed, spec, succeededIndexes, failedIndexes = [] } = sync;
  const running = new Set(active.map(completionIndexOf));
  const last = new Map<number, Pod>();
  for (const pod of pods) {
    const index = completionIndexOf(pod);
    if (index === undefined || index >= (spec.completions ?? 0) || running.has(index)) continue;
    if (!hasTrackingFinalizer(pod) || removed.has(pod.metadata?.uid ?? "") || !isPodFailed(pod, job)) continue;
    if (hasIndex(succeededIndexes, index) || hasIndex(failedIndexes, index)) continue;
    const other = last.get(index);
    const isLater =
      other === undefined || (failureCount(other) <= failureCount(pod) && finishTimeOf(pod) >= finishTimeOf(other));
    if (isLater) last.set(index, pod);
  }
  return last;
}

/** All failures of the pod's index before this pod, those that a failure policy ignores included. */
export function failureCount(pod: Pod): number {
  return readCount(pod, FAILURE_COUNT) + readCount(pod, IGNORED_FAILURE_COUNT);
}

function readCount({ metadata }: Pod, annotation: string): number {
  const text = metadata?.annotations?.[annotation] ?? "";
  const count = /^\+?\d+$/.test(text) ? Number(text) : 0;
  return count > INT32_MAX ? 0 : count;
}

/** The first indexes that need a pod. */
export function pendingIndexes(sync: JobSync, count: number): readonly number[] {
  const { job, pods, active, spec, succeededIndexes, failedIndexes = [] } = sync;
  const others = replacesOnlyFailedPods(job) ? pods.filter(isTerminating) : [];
  const taken = addIndexes(succeededIndexes, validIndexes([...active, ...others], Infinity));
  return firstMissing(mergeIndexes(taken, failedIndexes), count, spec.completions ?? 0);
}

/** Pods without a valid index, and all but one of each index. The rest stays. */
export function splitDuplicates(
  pods: readonly Pod[],
  completions: number,
  sort: (pods: readonly Pod[]) => readonly Pod[],
): { readonly surplus: readonly Pod[]; readonly rest: readonly Pod[] } {
  const byIndex = Map.groupBy(pods.filter(isActive), (pod) => {
    const index = completionIndexOf(pod);
    return index === undefined || index >= completions ? -1 : index;
  });
  const surplus = [...(byIndex.get(-1) ?? [])];
  const rest: Pod[] = [];
  for (const [index, same] of [...byIndex].sort(([a], [b]) => a - b)) {
    if (index === -1) continue;
    const sorted = sort(same);
    surplus.push(...sorted.slice(0, -1));
    rest.push(...sorted.slice(-1));
  }
  return { surplus, rest };
}

/** The template with the environment variable of the index in all containers. */
export function addIndexVariable({ metadata, spec }: PodTemplateSpec): PodTemplateSpec {
  const fieldRef = { fieldPath: `metadata.labels['${COMPLETION_INDEX}']` };
  const variable = { name: INDEX_VARIABLE, valueFrom: { fieldRef } };
  const add = <T extends { readonly env?: readonly { readonly name: string }[] | undefined }>(container: T): T =>
    container.env?.some(({ name }) => name === INDEX_VARIABLE) === true
      ? container
      : { ...container, env: [...(container.env ?? []), variable] };
  if (spec === undefined) return { metadata };
  const { containers, initContainers } = spec;
  const init = initContainers === undefined ? {} : { initContainers: initContainers.map(add) };
  return { metadata, spec: { ...spec, ...init, containers: containers.map(add) } };
}

/** The template of the pod of one index, and the prefix of its name. */
export function templateOfIndex({ metadata, spec }: PodTemplateSpec, index: number, sync: JobSync) {
  const { job, replaceable } = sync;
  const jobName = job.metadata?.name ?? "";
  const counts = job.spec?.backoffLimitPerIndex === undefined ? {} : nextCounts(job, replaceable.get(index));
  const annotations = { ...metadata?.annotations, [COMPLETION_INDEX]: String(index), ...counts };
  const labels = { ...metadata?.labels, [COMPLETION_INDEX]: String(index) };
  const ending = `-${index}-`;
  return {
    template: {
      metadata: { ...metadata, annotations, labels },
      ...(spec === undefined ? {} : { spec: { ...spec, hostname: `${jobName}-${index}` } }),
    },
    generateName: `${jobName.slice(0, GENERATE_NAME_MAX - ending.length)}${ending}`,
  };
}

function nextCounts(job: Job, replaced: Pod | undefined): Readonly<Record<string, string>> {
  if (replaced === undefined) return { [FAILURE_COUNT]: "0" };
  const { counts } = matchFailurePolicy(job, replaced);
  const ignored = readCount(replaced, IGNORED_FAILURE_COUNT) + (counts ? 0 : 1);
  return {
    [FAILURE_COUNT]: String(readCount(replaced, FAILURE_COUNT) + (counts ? 1 : 0)),
    ...(ignored > 0 ? { [IGNORED_FAILURE_COUNT]: String(ignored) } : {}),
  };
}
