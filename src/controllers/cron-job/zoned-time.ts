/** Local times of time zones, with the results of Go's time package where a local time is ambiguous or missing. */

/** A time of day without a zone. Months start with 1; Sunday is 0. */
export interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly weekday: number;
}

/** Formatters are expensive. Bounded by the zones that cron jobs use. */
const formatters = new Map<string, Intl.DateTimeFormat>();

export function toLocalTime(utc: number, zone: string): LocalTime {
  const local = new Date(utc + offsetAt(utc, zone));
  return {
    year: local.getUTCFullYear(),
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    weekday: local.getUTCDay(),
  };
}

/** Months and days out of range overflow, as in Go's `time.Date`. */
export function fromLocalTime(
  { year, month, day, hour = 0 }: { year: number; month: number; day: number; hour?: number },
  zone: string,
): number {
  const local = Date.UTC(year, month - 1, day, hour);
  const offset = offsetAt(local, zone);
  // The offset at the local time read as UTC is that of the other side of a transition close to it.
  return local - offsetAt(local - offset, zone);
}

/** RFC 3339 with the offset of the zone. */
export function formatInZone(utc: number, zone: string): string {
  const minutes = Math.round(offsetAt(utc, zone) / 60_000);
  const local = new Date(utc + minutes * 60_000).toISOString().slice(0, 19);
  if (minutes === 0) return `${local}Z`;
  const two = (value: number): string => String(value).padStart(2, "0");
  const [hours, rest] = [Math.trunc(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${local}${minutes < 0 ? "-" : "+"}${two(hours)}:${two(rest)}`;
}

/** Milliseconds that the zone is ahead of UTC. */
function offsetAt(utc: number, zone: string): number {
  if (zone === "UTC") return 0;
  const whole = Math.floor(utc / 1000) * 1000;
  const parts = formatterOf(zone).formatToParts(whole);
  const {
    year = 0,
    month = 0,
    day = 0,
    hour = 0,
    minute = 0,
    second = 0,
  } = Object.fromEntries(parts.map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

function formatterOf(zone: string): Intl.DateTimeFormat {
  const existing = formatters.get(zone);
  if (existing !== undefined) return existing;
  const numeric = "numeric" as const;
  const formatter = new Intl.DateTimeFormat("en-u-ca-gregory-nu-latn", {
    timeZone: zone,
    hourCycle: "h23",
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  });
  formatters.set(zone, formatter);
  return formatter;
}
