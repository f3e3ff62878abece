/** Readiness and availability of pods, and the order in which a scale down deletes them. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { parseSigned } from "../../schema/value/int64.ts";

const DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";

/** Neither finished nor terminating. */
export function isActive({ metadata, status }: Pod): boolean {
  return status?.phase !== "Succeeded" && status?.phase !== "Failed" && metadata?.deletionTimestamp === undefined;
}

/** Being deleted, and not finished. */
export function isTerminatingPod({ metadata, status }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined && status?.phase !== "Succeeded" && status?.phase !== "Failed";
}

export function isPodReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

export function isPodAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return isPodReady(pod) && untilAvailable(pod, minReadySeconds, now) === 0;
}

/** Milliseconds until a ready pod has been ready for longer than the time; 0 if it has been, or is not ready. */
export function untilAvailable(pod: Pod, minReadySeconds: number, now: number): number {
  const ready = readyCondition(pod);
  if (ready?.status !== "True" || minReadySeconds === 0) return 0;
  const since = ready.lastTransitionTime === undefined ? now : Date.parse(ready.lastTransitionTime);
  return Math.max(0, since + minReadySeconds * 1000 + 1 - now);
}

function readyCondition({ status }: Pod) {
  return status?.conditions?.find(({ type }) => type === "Ready");
}

/**
 * Sorts pods so that those to delete stand first. `ranks` are the numbers of related pods on the pods' nodes; the one
 * with more goes first. `usesCosts` takes the annotation of deletion costs into account. Times differ only by their
 * powers of two, so that not always the youngest pods go.
 */
export function sortForDeletion(
  pods: readonly Pod[],
  ranks: ReadonlyMap<Pod, number>,
  now: number,
  usesCosts = true,
): readonly Pod[] {
  const costOf = usesCosts ? deletionCost : () => 0;
  return [...pods].sort((a, b) => compareForDeletion(a, b, ranks, now, costOf));
}

const PHASES: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };

function compareForDeletion(
  a: Pod,
  b: Pod,
  ranks: ReadonlyMap<Pod, number>,
  now: number,
  costOf: (pod: Pod) => number,
): number {
  const byState =
    Number(isAssigned(a)) - Number(isAssigned(b)) ||
    (PHASES[a.status?.phase ?? ""] ?? 0) - (PHASES[b.status?.phase ?? ""] ?? 0) ||
    Number(isPodReady(a)) - Number(isPodReady(b)) ||
    costOf(a) - costOf(b) ||
    (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0);
  if (byState !== 0) return byState;
  if (isPodReady(a)) {
    const byReadyTime = compareTimes(readyTime(a), readyTime(b), a, b, now);
    if (byReadyTime !== 0) return byReadyTime;
  }
  return (
    maxRestarts(b, false) - maxRestarts(a, false) ||
    maxRestarts(b, true) - maxRestarts(a, true) ||
    compareTimes(a.metadata?.creationTimestamp, b.metadata?.creationTimestamp, a, b, now)
  );
}

function isAssigned({ spec }: Pod): boolean {
  return spec?.nodeName !== undefined && spec.nodeName !== "";
}

function deletionCost({ metadata }: Pod): number {
  const text = metadata?.annotations?.[DELETION_COST] ?? "0";
  // A sign of plus and leading zeros are invalid, but not behind a minus.
  return /^(0|-.+|[1-9].*)$/.test(text) ? Number(parseSigned(text, 32) ?? 0n) : 0;
}

function readyTime(pod: Pod): string | undefined {
  return readyCondition(pod)?.lastTransitionTime;
}

/** The later time first; an unknown time before a known one. Equal ages in powers of two are ordered by UID. */
function compareTimes(a: string | undefined, b: string | undefined, podA: Pod, podB: Pod, now: number): number {
  if (a === b) return 0;
  if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
  const byAge = magnitude(now - Date.parse(a)) - magnitude(now - Date.parse(b));
  if (byAge !== 0) return byAge;
  return (podA.metadata?.uid ?? "") < (podB.metadata?.uid ?? "") ? -1 : 1;
}

/** Kubernetes computes it in nanoseconds. */
function magnitude(milliseconds: number): number {
  return milliseconds > 0 ? Math.trunc(Math.log2(milliseconds * 1e6)) : -1;
}

function maxRestarts({ spec, status }: Pod, sidecars: boolean): number {
  if (!sidecars) return Math.max(0, ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount));
  const names = new Set(
    (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name),
  );
  const restarts = (status?.initContainerStatuses ?? []).filter(({ name }) => names.has(name));
  return Math.max(0, ...restarts.map(({ restartCount }) => restartCount));
}
