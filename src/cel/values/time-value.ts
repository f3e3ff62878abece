/** Timestamps of the years 1 to 9999 and durations, in nanoseconds. */
import { formatDuration, parseInstant } from "../../schema/value/time.ts";
import type { Type } from "./types.ts";
import { fail, Opaque, type Value } from "./value.ts";

const NANOS = 1_000_000_000n;
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;
const DURATION_MAX = 2n ** 63n - 1n;

export class Duration extends Opaque {
  readonly type: Type = { kind: "duration" };
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    if (nanos > DURATION_MAX || nanos < -DURATION_MAX - 1n) fail("integer overflow");
    this.nanos = nanos;
  }

  override equals(other: Value): boolean {
    return other instanceof Duration && other.nanos === this.nanos;
  }

  /** `1.5s`: in seconds, as in protobuf's JSON encoding. */
  text(): string {
    const size = this.nanos < 0n ? -this.nanos : this.nanos;
    const fraction = size % NANOS;
    const digits = fraction === 0n ? "" : `.${String(fraction).padStart(9, "0").replace(/0+$/, "")}`;
    return `${this.nanos < 0n ? "-" : ""}${size / NANOS}${digits}s`;
  }

  /** `1h30m0s`, as Go formats it. */
  goText(): string {
    return formatDuration(this.nanos);
  }
}

export class Timestamp extends Opaque {
  readonly type: Type = { kind: "timestamp" };
  /** Nanoseconds since 1970. */
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    const seconds = floorDivide(nanos, NANOS);
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND) fail("timestamp overflow");
    this.nanos = nanos;
  }

  /** Undefined when the text is not an RFC 3339 time. */
  static parse(text: string): Timestamp | undefined {
    const instant = parseInstant(text);
    if (instant === undefined) return undefined;
    return new Timestamp(BigInt(instant.seconds) * NANOS + BigInt(instant.nanos));
  }

  get seconds(): bigint {
    return floorDivide(this.nanos, NANOS);
  }

  override equals(other: Value): boolean {
    return other instanceof Timestamp && other.nanos === this.nanos;
  }

  text(): string {
    const seconds = this.seconds;
    const fraction = this.nanos - seconds * NANOS;
    const digits = fraction === 0n ? "" : `.${String(fraction).padStart(9, "0").replace(/0+$/, "")}`;
    return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}${digits}Z`;
  }

  /** The parts of the date in a time zone: a name (`Europe/Berlin`), or an offset (`+02:00`, `-8:30`). */
  inZone(zone: string): CalendarParts {
    const seconds = Number(this.seconds);
    const offset = zone === "UTC" || zone === "" ? 0 : offsetSeconds(zone, seconds);
    const date = new Date((seconds + offset) * 1000);
    const yearStart = new Date(0);
    yearStart.setUTCFullYear(date.getUTCFullYear(), 0, 1);
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth(),
      day: date.getUTCDate(),
      weekday: date.getUTCDay(),
      yearDay: Math.floor((date.getTime() - yearStart.getTime()) / 86_400_000),
      hours: date.getUTCHours(),
      minutes: date.getUTCMinutes(),
      seconds: date.getUTCSeconds(),
      milliseconds: Number((this.nanos - this.seconds * NANOS) / 1_000_000n),
    };
  }
}

export interface CalendarParts {
  readonly year: number;
  /** From 0, as are days of the year and of the week (Sunday). */
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly yearDay: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
}

const fixedOffset = /^([+-]?)(\d{1,2}):(\d{2})$/;
const zones = new Map<string, Intl.DateTimeFormat>();
/** The number of cached time zones; there are about 600 names. */
const ZONES_MAX = 64;

function offsetSeconds(zone: string, seconds: number): number {
  const fixed = fixedOffset.exec(zone);
  if (fixed !== null) {
    const size = (Number(fixed[2]) * 60 + Number(fixed[3])) * 60;
    return fixed[1] === "-" ? -size : size;
  }
  const parts = new Map(
    formatIn(zone)
      .formatToParts(seconds * 1000)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (name: string): number => parts.get(name as Intl.DateTimeFormatPartTypes) ?? 0;
  const local = new Date(0);
  local.setUTCFullYear(part("year"), part("month") - 1, part("day"));
  local.setUTCHours(part("hour"), part("minute"), part("second"));
  return local.getTime() / 1000 - seconds;
}

function formatIn(zone: string): Intl.DateTimeFormat {
  let format = zones.get(zone);
  if (format !== undefined) return format;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    return fail(`unknown time zone ${zone}`);
  }
  if (zones.size >= ZONES_MAX) zones.clear();
  zones.set(zone, format);
  return format;
}

function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}
