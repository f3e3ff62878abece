/**
 * Schedules of cron jobs: five fields (`0,30 9-17 * * mon-fri`), a descriptor (`@daily`), or an interval (`@every
 * 90m`). Syntax and error messages are those of Kubernetes.
 */

import { goQuote } from "../../../schema/value/go-quote.ts";
import { parseDuration } from "../../../schema/value/time.ts";

/** The error of an invalid schedule. */
export class CronError extends Error {}

export type CronSchedule = CronFields | { readonly everyNanos: bigint };

/** The values of each field at which the job runs. */
export interface CronFields {
  readonly minutes: CronField;
  readonly hours: CronField;
  readonly daysOfMonth: CronField;
  readonly months: CronField;
  /** Sunday is 0. */
  readonly daysOfWeek: CronField;
}

export interface CronField {
  readonly values: ReadonlySet<number>;
  /** The field is `*`: of the two day fields the other one decides. */
  readonly any: boolean;
}

interface Bounds {
  readonly least: number;
  readonly most: number;
  /** The names of values, starting with `least`. */
  readonly names?: readonly string[];
}

const MINUTES: Bounds = { least: 0, most: 59 };
const HOURS: Bounds = { least: 0, most: 23 };
const DAYS_OF_MONTH: Bounds = { least: 1, most: 31 };
const MONTHS: Bounds = {
  least: 1,
  most: 12,
  names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const DAYS_OF_WEEK: Bounds = { least: 0, most: 6, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

const DESCRIPTORS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
const EVERY = "@every ";
const FIELDS = 5;
/** A time zone prefix, which Kubernetes parses and another rule rejects. */
const ZONE = /^(?:CRON_)?TZ=\S* +/;

/** Throws a `CronError`. */
export function parseCronSchedule(text: string): CronSchedule {
  if (text === "") throw new CronError("empty spec string");
  const spec = text.replace(ZONE, "").trim();
  return spec.startsWith("@") ? parseDescriptor(spec) : parseFields(spec);
}

function parseDescriptor(text: string): CronSchedule {
  if (text.startsWith(EVERY)) {
    const duration = text.slice(EVERY.length);
    const everyNanos = parseDuration(duration);
    if (everyNanos !== undefined) return { everyNanos };
    throw new CronError(`failed to parse duration ${text}: time: invalid duration ${goQuote(duration)}`);
  }
  const fields = Object.hasOwn(DESCRIPTORS, text) ? DESCRIPTORS[text] : undefined;
  if (fields === undefined) throw new CronError(`unrecognized descriptor: ${text}`);
  return parseFields(fields);
}

function parseFields(text: string): CronFields {
  const fields = text.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== FIELDS) {
    throw new CronError(`expected exactly ${FIELDS} fields, found ${fields.length}: [${fields.join(" ")}]`);
  }
  const [minutes = "", hours = "", daysOfMonth = "", months = "", daysOfWeek = ""] = fields;
  return {
    minutes: parseField(minutes, MINUTES),
    hours: parseField(hours, HOURS),
    daysOfMonth: parseField(daysOfMonth, DAYS_OF_MONTH),
    months: parseField(months, MONTHS),
    daysOfWeek: parseField(daysOfWeek, DAYS_OF_WEEK),
  };
}

function parseField(text: string, bounds: Bounds): CronField {
  const ranges = text.split(",").filter((range) => range !== "");
  const parsed = ranges.map((range) => parseRange(range, bounds));
  return {
    values: new Set(parsed.flatMap(({ values }) => values)),
    any: parsed.some(({ any }) => any),
  };
}

/** `5`, `1-5` or `*`, optionally with a step: `1-5/2`. A number with a step starts a range to the maximum. */
function parseRange(text: string, bounds: Bounds): { readonly values: readonly number[]; readonly any: boolean } {
  const [range = "", stepText, ...slashes] = text.split("/");
  const [low = "", high, ...hyphens] = range.split("-");
  const star = low === "*" || low === "?";
  const start = star ? bounds.least : parseValue(low, bounds);
  let end = start;
  if (star) end = bounds.most;
  else if (hyphens.length > 0) throw new CronError(`too many hyphens: ${text}`);
  else if (high !== undefined) end = parseValue(high, bounds);
  if (slashes.length > 0) throw new CronError(`too many slashes: ${text}`);
  const step = stepText === undefined ? 1 : parseNumber(stepText);
  if (stepText !== undefined && high === undefined) end = bounds.most;

  const { least, most } = bounds;
  if (start < least) throw new CronError(`beginning of range (${start}) below minimum (${least}): ${text}`);
  if (end > most) throw new CronError(`end of range (${end}) above maximum (${most}): ${text}`);
  if (start > end) throw new CronError(`beginning of range (${start}) beyond end of range (${end}): ${text}`);
  if (step === 0) throw new CronError(`step of range should be a positive number: ${text}`);
  const values: number[] = [];
  for (let value = start; value <= end; value += step) values.push(value);
  return { values, any: star && step === 1 };
}

function parseValue(text: string, { names = [], least }: Bounds): number {
  const position = names.indexOf(text.toLowerCase());
  return position === -1 ? parseNumber(text) : least + position;
}

function parseNumber(text: string): number {
  if (!/^[-+]?\d+$/.test(text)) {
    throw new CronError(`failed to parse int from ${text}: strconv.Atoi: parsing ${goQuote(text)}: invalid syntax`);
  }
  const number = Number(text);
  if (number < 0) throw new CronError(`negative number (${number}) not allowed: ${text}`);
  return number;
}
