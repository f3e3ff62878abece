/** `semver('1.2.3-rc.1')`: versions as in semver.org. */
import { functionOf, type Library, method, overload } from "../functions.ts";
import { compareNumbers } from "../values/compare.ts";
import { boolType, intType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import { UINT_MAX } from "./arithmetic.ts";

const semverType = opaqueType("kubernetes.Semver");

class Semver extends Opaque {
  readonly type: Type = semverType;
  /** Major, minor, patch. */
  readonly numbers: readonly bigint[];
  readonly prerelease: readonly string[];

  constructor(numbers: readonly bigint[], prerelease: readonly string[]) {
    super();
    this.numbers = numbers;
    this.prerelease = prerelease;
  }

  override equals(other: Value): boolean {
    return other instanceof Semver && compareVersions(this, other) === 0;
  }
}

const identifiers = /^[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$/;

/** Returns the version or an error message. */
function parseStrict(text: string): Semver | string {
  if (text === "") return "Version string empty";
  const [major = "", minor, ...others] = text.split(".");
  if (minor === undefined || others.length === 0) return "No Major.Minor.Patch elements found";
  const [, patch = "", before, build] = /^([^+-]*)(?:-([^+]*))?(?:\+(.*))?$/s.exec(others.join(".")) ?? [];
  const numbers: bigint[] = [];
  for (const [name, digits] of [
    ["major", major],
    ["minor", minor],
    ["patch", patch],
  ] as const) {
    if (!/^\d+$/.test(digits)) return `Invalid character(s) found in ${name} number ${JSON.stringify(digits)}`;
    if (/^0\d/.test(digits))
      return `${capitalize(name)} number must not contain leading zeroes ${JSON.stringify(digits)}`;
    if (digits.length > 20 || BigInt(digits) > UINT_MAX) return `value out of range: ${digits}`;
    numbers.push(BigInt(digits));
  }
  if (before !== undefined && !identifiers.test(before)) return `Invalid character(s) found in prerelease "${before}"`;
  if (build !== undefined && !identifiers.test(build))
    return `Invalid character(s) found in build meta data "${build}"`;
  const prerelease = before?.split(".") ?? [];
  const zeroes = prerelease.find((part) => /^0\d+$/.test(part));
  if (zeroes !== undefined) return `Numeric PreRelease version must not contain leading zeroes "${zeroes}"`;
  return new Semver(numbers, prerelease);
}

function capitalize(name: string): string {
  return `${name[0]!.toUpperCase()}${name.slice(1)}`;
}

/** `v1.02` is `1.2.0`. */
function parseNormalized(text: string): Semver | string {
  const [first = "", second, ...others] = text.replace(/^v/, "").split(".");
  const parts = [first, second, others.length > 0 ? others.join(".") : undefined]
    .filter((part) => part !== undefined)
    .map((part) => part.replace(/^0+(?=\d)/, ""));
  if (parts.length < 3 && /[+-]/.test(parts.at(-1)!)) {
    return "short version cannot contain PreRelease/Build meta data";
  }
  while (parts.length < 3) parts.push("0");
  return parseStrict(parts.join("."));
}

function parseSemver(text: string, normalize = false): Semver | string {
  return normalize ? parseNormalized(text) : parseStrict(text);
}

export function toSemver(text: string, normalize?: boolean): Semver {
  const version = parseSemver(text, normalize);
  return typeof version === "string" ? fail(version) : version;
}

function isSemver(text: string, normalize?: boolean): boolean {
  return typeof parseSemver(text, normalize) !== "string";
}

function compareVersions(a: Semver, b: Semver): number {
  for (let i = 0; i < 3; i++) {
    const difference = compareNumbers(a.numbers[i]!, b.numbers[i]!);
    if (difference !== 0) return difference;
  }
  // A release comes after its prereleases.
  if (a.prerelease.length === 0 || b.prerelease.length === 0) {
    return Math.sign(b.prerelease.length - a.prerelease.length);
  }
  const shared = Math.min(a.prerelease.length, b.prerelease.length);
  for (let i = 0; i < shared; i++) {
    const difference = comparePrereleaseParts(a.prerelease[i]!, b.prerelease[i]!);
    if (difference !== 0) return difference;
  }
  return Math.sign(a.prerelease.length - b.prerelease.length);
}

/** Numeric identifiers are compared as numbers and come before others. */
function comparePrereleaseParts(a: string, b: string): number {
  const [first, second] = [a, b].map((part) => (/^\d+$/.test(part) ? BigInt(part) : undefined));
  if (first !== undefined && second !== undefined) return compareNumbers(first, second);
  if (first !== undefined) return -1;
  if (second !== undefined) return 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

const two = [semverType, semverType];
const normalizable = [stringType, boolType];

function numberFunction(name: string, index: number): ReturnType<typeof functionOf> {
  return functionOf(
    name,
    method(`semver_${name}`, [semverType], intType, ({ numbers }: Semver) => BigInt.asIntN(64, numbers[index]!)),
  );
}

export const semver: Library = {
  functions: [
    functionOf(
      "semver",
      overload("string_to_semver", [stringType], semverType, (text: string) => toSemver(text)),
      overload("string_bool_to_semver", normalizable, semverType, toSemver),
    ),
    functionOf(
      "isSemver",
      overload("is_semver_string", [stringType], boolType, (text: string) => isSemver(text)),
      overload("is_semver_string_bool", normalizable, boolType, isSemver),
    ),
    functionOf(
      "isGreaterThan",
      method("semver_is_greater_than", two, boolType, (a: Semver, b: Semver) => compareVersions(a, b) > 0),
    ),
    functionOf(
      "isLessThan",
      method("semver_is_less_than", two, boolType, (a: Semver, b: Semver) => compareVersions(a, b) < 0),
    ),
    functionOf(
      "compareTo",
      method("semver_compare_to", two, intType, (a: Semver, b: Semver) => BigInt(compareVersions(a, b))),
    ),
    numberFunction("major", 0),
    numberFunction("minor", 1),
    numberFunction("patch", 2),
  ],
};
