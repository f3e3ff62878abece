/** Which checks a level has in a release, and what they find in a pod. */
import { baseline } from "./baseline.ts";
import type { Check, CheckedPod, CheckPod, Violation } from "./check.ts";
import type { Level, LevelVersion } from "./level.ts";
import { restricted } from "./restricted.ts";
import { LATEST, type PolicyVersion } from "./version.ts";

/** In the order in which clients are told; none when the pod is as it must be. */
export function violationsOf(pod: CheckedPod, { level, version }: LevelVersion): readonly Violation[] {
  return checksOf(level, version)
    .map((check) => check(pod))
    .filter((violation) => violation !== undefined);
}

/** `privileged (container "a" must not …), hostPort (…)` */
export function detailsText(violations: readonly Violation[]): string {
  return violations.map(({ reason, detail }) => (detail === "" ? reason : `${reason} (${detail})`)).join(", ");
}

export function reasonsText(violations: readonly Violation[]): string {
  return violations.map(({ reason }) => reason).join(", ");
}

function checksOf(level: Level, version: PolicyVersion): readonly CheckPod[] {
  if (level === "privileged") return [];
  if (level === "baseline") return inForce(baseline, version).map(({ run }) => run);
  const stricter = inForce(restricted, version);
  const overridden = new Set(stricter.flatMap(({ check }) => check.overrides ?? []));
  const kept = inForce(baseline, version).filter(({ check }) => !overridden.has(check.id));
  return [...kept, ...stricter].map(({ run }) => run);
}

/** Rules of releases to come are those of the latest that is known. */
function inForce(checks: readonly Check[], version: PolicyVersion) {
  const minor = version === LATEST ? Number.POSITIVE_INFINITY : version;
  return checks.flatMap((check) => {
    const run = check.versions.findLast(([since]) => since <= minor)?.[1];
    return run === undefined ? [] : [{ check, run }];
  });
}
