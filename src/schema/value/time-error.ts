/** The errors of Go's `time.Parse` for RFC 3339 times, with six decimals for `micro`. */
import { Buffer } from "node:buffer";

interface Step {
  /** The part of the layout. */
  readonly layout: string;
  /** Matches the part at the start of the text. */
  readonly pattern: RegExp;
  /** Names the part in errors of a number out of range. */
  readonly range?: readonly [name: string, least: number, most: number];
}

const literal = (layout: string): Step => ({ layout, pattern: new RegExp(`^${layout}`) });
const digits = (layout: string, name: string, least: number, most: number): Step => {
  return { layout, pattern: /^\d\d/, range: [name, least, most] };
};

const DATE_AND_TIME: readonly Step[] = [
  { layout: "2006", pattern: /^\d{4}/ },
  literal("-"),
  digits("01", "month", 1, 12),
  literal("-"),
  digits("02", "day", 1, 31),
  literal("T"),
  digits("15", "hour", 0, 23),
  literal(":"),
  digits("04", "minute", 0, 59),
  literal(":"),
  digits("05", "second", 0, 59),
];
const DECIMALS: Step = { layout: ".000000", pattern: /^[.,]\d{6}/ };
const ANY_DECIMALS = /^[.,]\d+/;
const ZONE: Step = { layout: "Z07:00", pattern: /^(?:Z|[+-]\d\d:\d\d)/ };

/** As Go's package `time` quotes: each byte that is no visible ASCII character as `\x` and its code. */
function quoteTime(text: string): string {
  const escaped = text.replace(/["\\]/g, "\\$&");
  return `"${escaped.replace(/[^ -~\x7f]/gu, (character) => [...Buffer.from(character)].map(formatByte).join(""))}"`;
}

function formatByte(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** Explains why the text is no time. */
export function explainTimeError(text: string, micro: boolean): string {
  const layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
  let rest = text;
  for (const step of [...DATE_AND_TIME, ...(micro ? [DECIMALS] : []), ZONE]) {
    if (step === ZONE && !micro) rest = rest.replace(ANY_DECIMALS, "");
    const found = step.pattern.exec(rest)?.[0];
    if (found === undefined) {
      const why = `cannot parse ${quoteTime(rest)} as ${quoteTime(step.layout)}`;
      return `parsing time ${quoteTime(text)} as "${layout}": ${why}`;
    }
    const [name = "", least = 0, most = 0] = step.range ?? [];
    if (step.range !== undefined && (Number(found) < least || Number(found) > most)) {
      return `parsing time ${quoteTime(text)}: ${name} out of range`;
    }
    rest = rest.slice(found.length);
  }
  const why = rest === "" ? "day out of range" : `extra text: ${quoteTime(rest)}`;
  return `parsing time ${quoteTime(text)}: ${why}`;
}
