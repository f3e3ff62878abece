/** Failed pods of jobs: the pod failure policy, and the times of failures. */
import type { Job, PodFailurePolicyRule } from "../../api/batch/job/schema.ts";
import type { ContainerStatus } from "../../api/core/container/status.ts";
import type { Pod } from "../../api/core/pod/schema.ts";

export const TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking";

export function hasTrackingFinalizer({ metadata }: Pod): boolean {
  return metadata?.finalizers?.includes(TRACKING_FINALIZER) === true;
}

/** Being deleted, but not finished. */
export function isTerminating({ metadata, status }: Pod): boolean {
  const isFinished = status?.phase === "Succeeded" || status?.phase === "Failed";
  return !isFinished && metadata?.deletionTimestamp !== undefined;
}

/** Terminating pods are replaced when they have ended; otherwise as soon as their deletion begins. */
export function replacesOnlyFailedPods({ spec }: Job): boolean {
  return spec?.podReplacementPolicy === "Failed" || spec?.podFailurePolicy !== undefined;
}

/** A deleted pod may never reach the phase `Failed`: its node may be gone. */
export function isPodFailed(pod: Pod, job: Job): boolean {
  if (pod.status?.phase === "Failed") return true;
  if (replacesOnlyFailedPods(job)) return false;
  return pod.metadata?.deletionTimestamp !== undefined && pod.status?.phase !== "Succeeded";
}

export interface PolicyMatch {
  readonly action?: PodFailurePolicyRule["action"];
  /** Whether the failure counts towards the back-off limits. */
  readonly counts: boolean;
  /** The message of the job's failure for the action `FailJob`. */
  readonly message?: string;
}

/** Applies the first rule that matches the failed pod. */
export function matchFailurePolicy({ spec }: Job, pod: Pod): PolicyMatch {
  for (const [index, rule] of (spec?.podFailurePolicy?.rules ?? []).entries()) {
    const cause = matchRule(rule, pod);
    if (cause === undefined) continue;
    const { action } = rule;
    const message = action === "FailJob" ? { message: `${cause} matching ${action} rule at index ${index}` } : {};
    return { action, counts: action !== "Ignore", ...message };
  }
  return { counts: true };
}

/** What matched, as the beginning of a message. */
function matchRule({ onExitCodes, onPodConditions = [] }: PodFailurePolicyRule, pod: Pod): string | undefined {
  const podName = `${pod.metadata?.namespace}/${pod.metadata?.name}`;
  if (onExitCodes !== undefined) {
    const { containerName, operator, values } = onExitCodes;
    const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
    for (const { name, state } of [...containerStatuses, ...initContainerStatuses]) {
      const code = state?.terminated?.exitCode ?? 0;
      if (code === 0 || (containerName !== undefined && containerName !== name)) continue;
      if (values.includes(code) === (operator === "In")) {
        return `Container ${name} for pod ${podName} failed with exit code ${code}`;
      }
    }
    return undefined;
  }
  const found = (pod.status?.conditions ?? []).find((condition) =>
    onPodConditions.some(({ type, status }) => type === condition.type && status === condition.status),
  );
  return found === undefined ? undefined : `Pod ${podName} has condition ${found.type}`;
}

/**
 * When the pod finished, in milliseconds since 1970: the end of its last container or sidecar, else when it became
 * unready, else the beginning of its deletion.
 */
export function finishTimeOf(pod: Pod): number {
  const { metadata, status } = pod;
  // As in Kubernetes, sidecars that have ended suffice while containers run.
  const ended = lastEnd(sidecarStatuses(pod), lastEnd(status?.containerStatuses ?? [], undefined));
  if (ended !== undefined) return ended;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status === "False" && ready.lastTransitionTime !== undefined) return parseTime(ready.lastTransitionTime);
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, creationTimestamp } = metadata ?? {};
  if (deletionTimestamp !== undefined) return parseTime(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  return parseTime(creationTimestamp);
}

function sidecarStatuses({ spec, status }: Pod): readonly ContainerStatus[] {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const names = new Set(sidecars.map(({ name }) => name));
  return (status?.initContainerStatuses ?? []).filter(({ name }) => names.has(name));
}

/** The last end of these containers and the earlier one; undefined while one of them runs. */
function lastEnd(statuses: readonly ContainerStatus[], earlier: number | undefined): number | undefined {
  const ends = statuses.map(({ state }) => state?.terminated?.finishedAt);
  if (ends.includes(undefined)) return undefined;
  const times = [...ends.map(parseTime), ...(earlier === undefined ? [] : [earlier])];
  return times.length === 0 ? undefined : Math.max(...times);
}

function parseTime(text: string | undefined): number {
  return text === undefined ? 0 : Date.parse(text);
}
