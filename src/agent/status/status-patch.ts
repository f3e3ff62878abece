/** Computes the patch that sets the agent's fields of a pod's status and keeps those of other controllers. */
import type { PodCondition, PodStatus } from "../../api/core/pod/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";

/** Conditions of the agent; the patch does not remove others. */
const OWNED_CONDITIONS: ReadonlySet<string> = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodScheduled",
  "PodResizePending",
  "PodResizeInProgress",
]);

/** Lists that a strategic merge patch would merge by key; the patch replaces them. */
const REPLACED_LISTS: ReadonlySet<string> = new Set(["podIPs", "hostIPs"]);

/** Fields that the agent never writes. */
const UNOWNED_FIELDS: ReadonlySet<string> = new Set(["nominatedNodeName", "resize", "resourceClaimStatuses"]);

/** A strategic merge patch of the `status` member; undefined when nothing differs. */
export function makeStatusPatch(
  before: PodStatus | undefined,
  after: PodStatus,
): Readonly<Record<string, unknown>> | undefined {
  const patch: Record<string, unknown> = {};
  const old = (before ?? {}) as Readonly<Record<string, unknown>>;
  const next = after as Readonly<Record<string, unknown>>;
  for (const key of new Set([...Object.keys(old), ...Object.keys(next)])) {
    if (UNOWNED_FIELDS.has(key) || deepEqual(old[key], next[key])) continue;
    if (key === "conditions") {
      const conditions = makeConditionPatches(before?.conditions ?? [], after.conditions ?? []);
      if (conditions.length > 0) patch[key] = conditions;
    } else if (next[key] === undefined) {
      patch[key] = null;
    } else if (REPLACED_LISTS.has(key) && old[key] !== undefined) {
      patch[key] = [...(next[key] as readonly unknown[]), { $patch: "replace" }];
    } else {
      patch[key] = next[key];
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function makeConditionPatches(before: readonly PodCondition[], after: readonly PodCondition[]): readonly unknown[] {
  const changes: unknown[] = [];
  for (const condition of after) {
    const found = before.find((each) => each.type === condition.type);
    if (found !== undefined && isSameCondition(found, condition)) continue;
    // Removes a reason or message that no longer applies.
    const cleared = Object.fromEntries(
      (["reason", "message"] as const)
        .filter((key) => found?.[key] !== undefined && condition[key] === undefined)
        .map((key) => [key, null]),
    );
    changes.push({ ...condition, ...cleared });
  }
  const types = new Set(after.map((each) => each.type));
  for (const { type } of before) {
    if (OWNED_CONDITIONS.has(type) && !types.has(type)) changes.push({ type, $patch: "delete" });
  }
  return changes;
}

function isSameCondition(a: PodCondition, b: PodCondition): boolean {
  return (
    a.status === b.status &&
    (a.reason ?? "") === (b.reason ?? "") &&
    (a.message ?? "") === (b.message ?? "") &&
    a.lastTransitionTime === b.lastTransitionTime
  );
}
