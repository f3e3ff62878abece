/** Warnings about existing pods of a namespace whose enforced level becomes stricter. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { CheckedPod } from "./check.ts";
import { findViolations, reasonsText } from "./evaluate.ts";
import { formatLevel, isStricter, type LevelVersion } from "./level.ts";

/** Bounds of the evaluation, since the client waits for it. */
const PODS_MAX = 3000;
const MS_MAX = 1000;

export function isTightened(next: LevelVersion, before: LevelVersion): boolean {
  if (next.level === "privileged") return false;
  return next.version === before.version ? isStricter(next, before) : true;
}

export function warnExistingPods(
  namespace: string,
  pods: readonly Pod[],
  level: LevelVersion,
  toCheckedPod: (metadata: ObjectMeta, spec: PodSpec) => CheckedPod,
  clock: Clock,
): readonly string[] {
  const deadline = clock.monotonic() + MS_MAX;
  const byReason = new Map<string, string[]>();
  let checkedCount = 0;
  for (const { metadata = {}, spec } of pods.slice(0, PODS_MAX)) {
    if (clock.monotonic() > deadline) break;
    checkedCount++;
    const violations = spec === undefined ? [] : findViolations(toCheckedPod(metadata, spec), level);
    if (violations.length === 0) continue;
    const reasons = reasonsText(violations);
    byReason.set(reasons, [...(byReason.get(reasons) ?? []), metadata.name ?? ""]);
  }
  const enforced = JSON.stringify(formatLevel(level));
  const first = `first ${checkedCount} of ${pods.length} existing pods`;
  return [
    ...(checkedCount < pods.length ? [`new PodSecurity enforce level only checked against the ${first}`] : []),
    ...(byReason.size > 0
      ? [`existing pods in namespace "${namespace}" violate the new PodSecurity enforce level ${enforced}`]
      : []),
    ...[...byReason].map(([reasons, names]) => `${podsText(names)}: ${reasons}`).sort(),
  ];
}

/** `a (and 2 other pods)` */
function podsText(names: readonly string[]): string {
  const [first = ""] = [...names].sort();
  const others = names.length - 1;
  return others === 0 ? first : `${first} (and ${others} other pod${others === 1 ? "" : "s"})`;
}
