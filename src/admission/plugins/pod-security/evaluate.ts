/** Selects the checks of a level and version, and runs them for a pod. */
import { baseline } from "./baseline.ts";
import type { Check, CheckedPod, CheckPod, Violation } from "./check.ts";
import type { Level, LevelVersion } from "./level.ts";
import { restricted } from "./restricted.ts";
import { LATEST, type PolicyVersion } from "./version.ts";

/** The violations in the order of messages. */
export function findViolations(pod: CheckedPod, { level, version }: LevelVersion): readonly Violation[] {
  return selectChecks(level, version)
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

function selectChecks(level: Level, version: PolicyVersion): readonly CheckPod[] {
  if (level === "privileged") return [];
  if (level === "baseline") return checksAtVersion(baseline, version).map(({ run }) => run);
  const restrictedChecks = checksAtVersion(restricted, version);
  const overridden = new Set(restrictedChecks.flatMap(({ check }) => check.overrides ?? []));
  const baselineChecks = checksAtVersion(baseline, version).filter(({ check }) => !overridden.has(check.id));
  return [...baselineChecks, ...restrictedChecks].map(({ run }) => run);
}

/** The checks of the version; versions after the latest known one have its rules. */
function checksAtVersion(checks: readonly Check[], version: PolicyVersion) {
  const minor = version === LATEST ? Number.POSITIVE_INFINITY : version;
  return checks.flatMap((check) => {
    const run = check.versions.findLast(([since]) => since <= minor)?.[1];
    return run === undefined ? [] : [{ check, run }];
  });
}
