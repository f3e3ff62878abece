/** Versions as in https://semver.org/spec/v2.0.0.html. */

export interface SemanticVersion {
  /** Major, minor, patch. */
  readonly numbers: readonly bigint[];
  /** Those of a pre-release: `["rc", "1"]`. */
  readonly labels: readonly string[];
}

const NUMBER = "(?:0|[1-9]\\d*)";
const LABEL = `(?:${NUMBER}|\\d*[a-zA-Z-][0-9a-zA-Z-]*)`;
const VERSION = new RegExp(
  `^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})(?:-(${LABEL}(?:\\.${LABEL})*))?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
);
const NUMBER_MAX = 2n ** 64n - 1n;

export function parseSemanticVersion(text: string): SemanticVersion | undefined {
  const match = VERSION.exec(text);
  if (match === null) return undefined;
  const [, major = "", minor = "", patch = "", labels] = match;
  const numbers = [major, minor, patch].map(BigInt);
  return numbers.every((number) => number <= NUMBER_MAX) ? { numbers, labels: labels?.split(".") ?? [] } : undefined;
}

/** Negative when `a` precedes `b`. */
export function compareSemanticVersions(a: SemanticVersion, b: SemanticVersion): number {
  for (const [i, number] of a.numbers.entries()) {
    const other = b.numbers[i] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  // A release follows its pre-releases.
  if (a.labels.length === 0 || b.labels.length === 0) return b.labels.length - a.labels.length;
  for (const [i, label] of a.labels.entries()) {
    const other = b.labels[i];
    if (other === undefined) return 1;
    const order = compareLabels(label, other);
    if (order !== 0) return order;
  }
  return a.labels.length - b.labels.length;
}

/** Numbers precede other labels. */
function compareLabels(a: string, b: string): number {
  const [left, right] = [a, b].map((label) => (/^\d+$/.test(label) ? BigInt(label) : undefined));
  if (left !== undefined && right !== undefined) return left < right ? -1 : left > right ? 1 : 0;
  if (left !== undefined || right !== undefined) return left === undefined ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
