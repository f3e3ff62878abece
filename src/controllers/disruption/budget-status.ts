/** The status of a disruption budget. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from "../../api/policy/pod-disruption-budget/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { isPodReady } from "../workload/active-pods.ts";
import type { ExpectedPods } from "./expected-pods.ts";

/** An evicted pod that has not been deleted after this time counts again. */
const DELETION_TIMEOUT_MS = 2 * 60_000;
const ALLOWED = "DisruptionAllowed";

export interface DisruptedPods {
  /** When each pod was evicted, by its name. */
  readonly pods: Readonly<Record<string, string>>;
  /** Pods that were evicted but not deleted in time. */
  readonly expired: readonly Pod[];
  /** Milliseconds until the next one expires. */
  readonly nextMs: number | undefined;
}

/** The evicted pods of the status whose deletion the informer has not shown. */
export function disruptedPodsOf({ status }: PodDisruptionBudget, pods: readonly Pod[], now: number): DisruptedPods {
  const kept: Record<string, string> = {};
  const expired: Pod[] = [];
  let nextMs: number | undefined;
  for (const pod of pods) {
    const name = pod.metadata?.name ?? "";
    const evictedAt = status?.disruptedPods?.[name];
    if (evictedAt === undefined || pod.metadata?.deletionTimestamp !== undefined) continue;
    const left = Date.parse(evictedAt) + DELETION_TIMEOUT_MS - now;
    if (left < 0) {
      expired.push(pod);
      continue;
    }
    kept[name] = evictedAt;
    nextMs = Math.min(nextMs ?? left, left);
  }
  return { pods: kept, expired, nextMs };
}

/** Undefined if the status is up to date. */
export function calculateBudgetStatus(
  { metadata, status }: PodDisruptionBudget,
  pods: readonly Pod[],
  { expected, desiredHealthy }: ExpectedPods,
  disrupted: DisruptedPods["pods"],
  now: number,
): PodDisruptionBudgetStatus | undefined {
  const currentHealthy = pods.filter(({ metadata: { name = "", deletionTimestamp } = {}, ...pod }) => {
    return deletionTimestamp === undefined && !Object.hasOwn(disrupted, name) && isPodReady(pod);
  }).length;
  // Without pods nothing is allowed, since the first ones may appear before the next sync.
  const disruptionsAllowed = expected <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const observedGeneration = metadata?.generation ?? 0;
  const isAllowed = disruptionsAllowed > 0;
  const next: PodDisruptionBudgetStatus = {
    observedGeneration,
    disruptionsAllowed,
    currentHealthy,
    desiredHealthy,
    expectedPods: expected,
    ...(Object.keys(disrupted).length > 0 ? { disruptedPods: disrupted } : {}),
    conditions: setAllowed(status, isAllowed, isAllowed ? "SufficientPods" : "InsufficientPods", "", {
      now,
      observedGeneration,
    }),
  };
  return isSame(next, status) ? undefined : next;
}

function isSame(next: PodDisruptionBudgetStatus, status: PodDisruptionBudgetStatus | undefined): boolean {
  const normalize = ({ disruptedPods = {}, ...rest }: PodDisruptionBudgetStatus) => ({ ...rest, disruptedPods });
  return status !== undefined && deepEqual(normalize(next), normalize(status));
}

/** The status after a failed sync: no disruption is allowed, so that no eviction happens by wrong numbers. */
export function failedStatus({ status }: PodDisruptionBudget, message: string, now: number) {
  const observedGeneration = status?.observedGeneration ?? 0;
  const conditions = setAllowed(status, false, "SyncFailed", message, { now, observedGeneration });
  const none = { currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  return { ...none, ...status, disruptionsAllowed: 0, conditions };
}

function setAllowed(
  status: PodDisruptionBudgetStatus | undefined,
  isAllowed: boolean,
  reason: string,
  message: string,
  { now, observedGeneration }: { readonly now: number; readonly observedGeneration: number },
): NonNullable<PodDisruptionBudgetStatus["conditions"]> {
  const conditions = status?.conditions ?? [];
  const index = conditions.findIndex(({ type }) => type === ALLOWED);
  const old = conditions[index];
  const value = isAllowed ? ("True" as const) : ("False" as const);
  const lastTransitionTime = old?.status === value ? old.lastTransitionTime : formatTime(now);
  const next = { type: ALLOWED, status: value, observedGeneration, lastTransitionTime, reason, message };
  return old === undefined ? [...conditions, next] : conditions.with(index, next);
}
