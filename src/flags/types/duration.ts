/** Go's durations: `1h30m0s`, `250ms`. Values are milliseconds, with a fraction below one. */
import { ValueError, type ValueType } from "../flag.ts";
import type { Bounds } from "./number.ts";

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Go's time.Duration is 63 bits of nanoseconds: 292 years. */
const durationMsMax = (2 ** 63 - 1) / 1e6;

/** Milliseconds; undefined when `text` is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text);
  if (match === null) return undefined;
  let total = 0;
  for (const [, amount = "", unit = ""] of match[2]!.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)) {
    total += Number(amount) * unitMs[unit]!;
  }
  if (total > durationMsMax) return undefined;
  return match[1] === "-" && total !== 0 ? -total : total;
}

/** As Go prints it: `1m0s`, `100ms`, `1.5s`, `0s`. */
export function printDuration(ms: number): string {
  const nanoseconds = Math.round(Math.abs(ms) * 1e6);
  const sign = ms < 0 && nanoseconds > 0 ? "-" : "";
  if (nanoseconds === 0) return "0s";
  if (nanoseconds < 1e3) return `${sign}${nanoseconds}ns`;
  if (nanoseconds < 1e6) return `${sign}${nanoseconds / 1e3}µs`;
  if (nanoseconds < 1e9) return `${sign}${nanoseconds / 1e6}ms`;
  const wholeSeconds = Math.floor(nanoseconds / 1e9);
  const fraction = String(nanoseconds % 1e9)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const hours = Math.floor(wholeSeconds / 3600);
  const minutes = Math.floor(wholeSeconds / 60) % 60;
  const seconds = `${wholeSeconds % 60}${fraction === "" ? "" : `.${fraction}`}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return `${sign}${minutes > 0 ? `${minutes}m` : ""}${seconds}`;
}

/** `bounds` in milliseconds. */
export function duration(bounds: Bounds = {}): ValueType<number> {
  const { min = -Infinity, max = Infinity } = bounds;
  const allowed = `a duration such as 30s or 2m0s${boundsText(bounds)}`;
  const parse = (value: string): number => {
    const ms = parseDuration(value);
    if (ms === undefined || ms < min || ms > max) throw new ValueError(`must be ${allowed}`);
    return ms;
  };
  return {
    name: "duration",
    allowed,
    sample: printDuration(Math.min(90_000, max)),
    wrong: "10 parsecs",
    parse,
    print: printDuration,
    toJson: printDuration,
    fromJson: (json) => parse(String(json)),
  };
}

function boundsText({ min, max }: Bounds): string {
  return [
    ...(min === undefined ? [] : [`, not below ${printDuration(min)}`]),
    ...(max === undefined ? [] : [`, not above ${printDuration(max)}`]),
  ].join("");
}
