/** Durations of the OpenAPI format `duration`: Go's format (`1h30m`), or words (`2 days`, `3 wks`). */
import { parseDuration } from "../../schema/value/time.ts";

const MILLISECOND = 1_000_000n;
const SECOND = 1000n * MILLISECOND;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;
const DURATION_MAX = 2n ** 63n - 1n;

/** The short names of each unit, and the prefix of its long names. */
const units: readonly (readonly [names: readonly string[], beginning: string, nanos: bigint])[] = [
  [["ns"], "nano", 1n],
  [["us"], "micro", 1000n],
  [["ms"], "milli", MILLISECOND],
  [["s"], "sec", SECOND],
  [["m"], "min", MINUTE],
  [["h", "hr"], "hour", HOUR],
  [["d"], "day", DAY],
  [["w", "wk"], "week", 7n * DAY],
];

/** In nanoseconds; undefined when invalid. Ignores unknown units, as Kubernetes does. */
export function parseDurationFormat(text: string): bigint | undefined {
  const exact = parseDuration(text);
  if (exact !== undefined) return exact;
  let total: bigint | undefined;
  for (const [, digits = "", word = ""] of text.matchAll(/(\d{1,18})\s*([A-Za-z]+)/g)) {
    const name = word.toLowerCase();
    const unit = units.find(([names, beginning]) => names.includes(name) || name.startsWith(beginning));
    if (unit !== undefined) total = (total ?? 0n) + BigInt(digits) * unit[2];
  }
  return total !== undefined && total <= DURATION_MAX ? total : undefined;
}
