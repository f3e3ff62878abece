/** Version priority as in Kubernetes: `v2`, `v1`, `v2beta1`, `v1alpha1`, then others. */

interface ParsedVersion {
  readonly major: number;
  /** 2 for `v1`, 1 for `v1beta1`, 0 for `v1alpha1`. */
  readonly stage: number;
  readonly minor: number;
}

const STAGES = ["alpha", "beta", ""] as const;

/** Negative when `a` has priority. Names that are not versions come last, alphabetically. */
export function compareVersions(a: string, b: string): number {
  const left = parseVersion(a);
  const right = parseVersion(b);
  if (left === undefined || right === undefined) {
    if (left !== right) return left === undefined ? 1 : -1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

function parseVersion(name: string): ParsedVersion | undefined {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(name);
  if (match === null) return undefined;
  const [, major, stage = "", minor = "0"] = match;
  return { major: Number(major), stage: STAGES.indexOf(stage as (typeof STAGES)[number]), minor: Number(minor) };
}
