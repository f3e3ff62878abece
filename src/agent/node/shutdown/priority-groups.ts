/** Which pods end one after the other when the machine shuts down, and how long each group of them may take. */
import type { Pod } from "../../../api/core/pod/schema.ts";

export interface ShutdownGroup {
  /** The lowest priority of the group's pods. */
  readonly priority: number;
  /** Longest termination grace period, and how long the group is waited for. */
  readonly graceSeconds: number;
}

/** The priority of pods without a priority class. */
const DEFAULT_PRIORITY = 0;
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** Critical pods end last, in their part of the whole period. Empty when the period is 0. */
export function toShutdownGroups(periodMs: number, criticalMs: number): readonly ShutdownGroup[] {
  if (periodMs <= 0 || criticalMs > periodMs) return [];
  return [
    { priority: DEFAULT_PRIORITY, graceSeconds: Math.floor((periodMs - criticalMs) / 1000) },
    { priority: SYSTEM_CRITICAL_PRIORITY, graceSeconds: Math.floor(criticalMs / 1000) },
  ];
}

export function sortShutdownGroups(groups: readonly ShutdownGroup[]): readonly ShutdownGroup[] {
  return [...groups].sort((a, b) => a.priority - b.priority);
}

/** The longest time of all groups together. */
export function totalGraceMs(groups: readonly ShutdownGroup[]): number {
  return 1000 * groups.reduce((total, { graceSeconds }) => total + graceSeconds, 0);
}

/** `groups`: by ascending priority. Pods below the lowest priority belong to the first group. */
export function groupByPriority<T extends { readonly pod: Pod }>(
  groups: readonly ShutdownGroup[],
  pods: readonly T[],
): readonly { readonly graceSeconds: number; readonly pods: readonly T[] }[] {
  const indexOf = ({ pod }: T): number =>
    Math.max(
      0,
      groups.findLastIndex(({ priority }) => priority <= (pod.spec?.priority ?? DEFAULT_PRIORITY)),
    );
  return groups.map(({ graceSeconds }, index) => ({
    graceSeconds,
    pods: pods.filter((pod) => indexOf(pod) === index),
  }));
}
