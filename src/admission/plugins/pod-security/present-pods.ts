/** Whoever makes a namespace stricter hears which of its pods would not be let in again. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { ObjectMeta } from "../../../api/meta/object-meta.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { CheckedPod } from "./check.ts";
import { reasonsText, violationsOf } from "./evaluate.ts";
import { formatLevel, isStricter, type LevelVersion } from "./level.ts";

/** As many are looked at, and so long, while the client waits. */
const PODS_MAX = 3000;
const MS_MAX = 1000;

export function tightens(next: LevelVersion, before: LevelVersion): boolean {
  if (next.level === "privileged") return false;
  return next.version === before.version ? isStricter(next, before) : true;
}

export function presentViolations(
  namespace: string,
  pods: readonly Pod[],
  level: LevelVersion,
  checked: (metadata: ObjectMeta, spec: PodSpec) => CheckedPod,
  clock: Clock,
): readonly string[] {
  const until = clock.monotonic() + MS_MAX;
  const byReason = new Map<string, string[]>();
  let seen = 0;
  for (const { metadata = {}, spec } of pods.slice(0, PODS_MAX)) {
    if (clock.monotonic() > until) break;
    seen++;
    const violations = spec === undefined ? [] : violationsOf(checked(metadata, spec), level);
    if (violations.length === 0) continue;
    const reasons = reasonsText(violations);
    byReason.set(reasons, [...(byReason.get(reasons) ?? []), metadata.name ?? ""]);
  }
  const enforced = JSON.stringify(formatLevel(level));
  const first = `first ${seen} of ${pods.length} existing pods`;
  return [
    ...(seen < pods.length ? [`new PodSecurity enforce level only checked against the ${first}`] : []),
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
