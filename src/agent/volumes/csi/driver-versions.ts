/** The versions of CSI that a driver reports when it registers. */
import { goQuote } from "../../../schema/value/go-quote.ts";

/** Why the driver is not supported, in Kubernetes' words; undefined when it is: all versions 1.x are the same. */
export function findVersionProblem(driver: string, versions: readonly string[]): string | undefined {
  const failed = `kubernetes.io/csi: ValidatePlugin for CSI driver ${goQuote(driver)} failed.`;
  if (versions.length === 0) return `${failed} Plugin returned an empty list for supported versions`;
  const why = findHighestProblem(versions);
  if (why === undefined) return undefined;
  return `${failed} None of the versions specified [${versions.map(goQuote).join(" ")}] are supported. err=${why}`;
}

/** The highest version below 2 must be 1.x. */
function findHighestProblem(versions: readonly string[]): string | undefined {
  const parsed = versions.map(parseVersion);
  const numbers = parsed.filter((each) => typeof each !== "string").filter(([major = 0n]) => major <= 1n);
  const [first, ...others] = numbers;
  if (first === undefined) {
    const error = parsed.find((each) => typeof each === "string") ?? "<nil>";
    return `could not find a highest supported version from versions ([${versions.join(" ")}]) reported: ${error}`;
  }
  const highest = others.reduce((a, b) => (compareVersions(a, b) < 0 ? b : a), first);
  return highest[0] === 1n ? undefined : `highest supported version reported is ${highest.join(".")}, must be v1.x`;
}

/** At least two numbers, and anything behind them. Returns Go's error for other texts. */
function parseVersion(text: string): readonly bigint[] | string {
  const [, numbers] = /^\s*v?(\d+(?:\.\d+)*)/.exec(text) ?? [];
  if (numbers === undefined) return `could not parse ${goQuote(text)} as version`;
  const components = numbers.split(".");
  const [major = ""] = components;
  if (components.length < 2) return `illegal version string ${goQuote(text)}`;
  if (/^0./.test(major)) return `illegal zero-prefixed version component ${goQuote(major)} in ${goQuote(text)}`;
  return components.map(BigInt);
}

function compareVersions(a: readonly bigint[], b: readonly bigint[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [left, right] = [a[index] ?? 0n, b[index] ?? 0n];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
