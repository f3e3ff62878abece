/** RFC 3339 times and Go durations: canonical text, and the numbers of their protobuf encoding. */

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|([+-])(\d\d):(\d\d))$/;
const canonicalTime = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/;

export interface Instant {
  /** Seconds since 1970. */
  readonly seconds: number;
  readonly nanos: number;
}

/** Undefined when the text is not an RFC 3339 time or the day does not exist. */
export function parseInstant(text: string): Instant | undefined {
  const seconds = text.length === 20 ? canonicalSeconds(text) : undefined;
  return seconds === undefined ? parseAnyInstant(text) : { seconds, nanos: 0 };
}

/** The seconds of a time in canonical format, which stored objects have; undefined for others. Ten times faster. */
function canonicalSeconds(text: string): number | undefined {
  const marks =
    text.charCodeAt(4) === DASH &&
    text.charCodeAt(7) === DASH &&
    text.charCodeAt(10) === LETTER_T &&
    text.charCodeAt(13) === COLON &&
    text.charCodeAt(16) === COLON &&
    text.charCodeAt(19) === LETTER_Z;
  if (!marks) return undefined;
  const year = parseTwoDigits(text, 0) * 100 + parseTwoDigits(text, 2);
  const month = parseTwoDigits(text, 5);
  const day = parseTwoDigits(text, 8);
  const hour = parseTwoDigits(text, 11);
  const minute = parseTwoDigits(text, 14);
  const second = parseTwoDigits(text, 17);
  // Every comparison with NaN is false.
  const inRange = month >= 1 && month <= 12 && day >= 1 && day <= 28 && hour < 24 && minute < 60 && second < 60;
  return inRange && year >= 0
    ? ((daysSinceEpoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    : undefined;
}

const DASH = 0x2d;
const COLON = 0x3a;
const LETTER_T = 0x54;
const LETTER_Z = 0x5a;

/** The years 0 to 9999. */
const EARLIEST = -62_167_219_200;
const LATEST = 253_402_300_799;

/** NaN when either character is not a digit. */
function parseTwoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 0x30;
  const ones = text.charCodeAt(at + 1) - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

const SHIFT_DAYS = 719_468;
const ERA_DAYS = 146_097;

/**
 * Days from 1970 to a day of the Gregorian calendar. Years begin in March, so that the leap day is their last; 400 of
 * them make an era.
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * ERA_DAYS + dayOfEra - SHIFT_DAYS;
}

function parseAnyInstant(text: string): Instant | undefined {
  const parts = rfc3339.exec(text);
  if (parts === null) return undefined;
  const numbers = parts.slice(1, 7).map(Number);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = numbers;
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const nanos = Number((parts[7] ?? "").slice(0, 9).padEnd(9, "0"));
  const offsetMinutes = Number(parts[10] ?? 0) * 60 + Number(parts[11] ?? 0);
  if (offsetMinutes > 24 * 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const offset = (parts[9] === "-" ? 1 : -1) * offsetMinutes * 60;
  const seconds = date.getTime() / 1000 + offset;
  // The offset can move the year in UTC outside 0 to 9999.
  return seconds < EARLIEST || seconds > LATEST ? undefined : { seconds, nanos };
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** `2006-01-02T15:04:05Z`, with six decimals when `micro`. The year must be 0 to 9999. */
export function formatInstant(instant: Instant, micro: boolean): string {
  const seconds = Math.floor(instant.seconds);
  const days = Math.floor(seconds / 86_400);
  const rest = seconds - days * 86_400;
  const time = `${pairs[Math.floor(rest / 3600)]}:${pairs[Math.floor(rest / 60) % 60]}:${pairs[rest % 60]}`;
  const text = `${formatDay(days)}T${time}`;
  if (!micro) return `${text}Z`;
  return `${text}.${String(Math.trunc(instant.nanos / 1000)).padStart(6, "0")}Z`;
}

const pairs: readonly string[] = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, "0"));

/** `2006-01-02`, the inverse of `daysBefore`. */
function formatDay(days: number): string {
  const shifted = days + SHIFT_DAYS;
  const era = Math.floor(shifted / ERA_DAYS);
  const dayOfEra = shifted - era * ERA_DAYS;
  const leaps = Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365);
  const dayOfYear = dayOfEra - (yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const day = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  return `${pairs[Math.floor(year / 100)]}${pairs[year % 100]}-${pairs[month]}-${pairs[day]}`;
}

/** Formats milliseconds since 1970 as `metav1.Time`: UTC, rounded down to seconds. */
export function formatTime(milliseconds: number): string {
  return formatInstant(instantOf(milliseconds), false);
}

/** Formats milliseconds since 1970 as `metav1.MicroTime`. */
export function formatMicroTime(milliseconds: number): string {
  return formatInstant(instantOf(milliseconds), true);
}

function instantOf(milliseconds: number): Instant {
  const seconds = Math.floor(milliseconds / 1000);
  return { seconds, nanos: Math.floor((milliseconds - seconds * 1000) * 1_000_000) };
}

/** Converts a time to UTC and whole seconds or microseconds; undefined when the text is not a time. */
export function canonicalizeTime(text: string, micro: boolean): string | undefined {
  if (!micro && canonicalTime.test(text)) return text;
  const instant = parseInstant(text);
  return instant === undefined ? undefined : formatInstant(instant, micro);
}

const durationPart = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/gy;
const nanosPer: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const longestDuration = 2n ** 63n - 1n;

/** Parses a Go duration (`1h2m3.5s`, `-1.5h`, `0`) to nanoseconds; undefined when invalid or out of 64 bits. */
export function parseDuration(text: string): bigint | undefined {
  const negative = text.startsWith("-");
  const body = negative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return 0n;
  let total = 0n;
  let end = 0;
  for (const match of body.matchAll(durationPart)) {
    const [part, number = "", name = ""] = match;
    const [whole = "", fraction = ""] = number.split(".");
    const factor = nanosPer[name] ?? 0n;
    const digits = fraction.slice(0, 18);
    total += BigInt(whole || "0") * factor + (BigInt(digits || "0") * factor) / 10n ** BigInt(digits.length);
    end += part.length;
  }
  if (end === 0 || end !== body.length || total > longestDuration) return undefined;
  return negative ? -total : total;
}

/** Formats as Go does: `1h0m0s`, `1.5s`, `20ms`, `0s`. */
export function formatDuration(nanos: bigint): string {
  if (nanos === 0n) return "0s";
  const sign = nanos < 0n ? "-" : "";
  const size = nanos < 0n ? -nanos : nanos;
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${formatDecimal(size, 1_000n)}µs`;
  if (size < 1_000_000_000n) return `${sign}${formatDecimal(size, 1_000_000n)}ms`;
  const minutes = size / 60_000_000_000n;
  const seconds = `${formatDecimal(size % 60_000_000_000n, 1_000_000_000n)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  const hours = minutes / 60n;
  return hours === 0n ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60n}m${seconds}`;
}

function formatDecimal(amount: bigint, per: bigint): string {
  const rest = amount % per;
  if (rest === 0n) return `${amount / per}`;
  const digits = String(rest)
    .padStart(String(per).length - 1, "0")
    .replace(/0+$/, "");
  return `${amount / per}.${digits}`;
}
