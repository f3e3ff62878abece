/** The next run of a schedule after a time. */
import type { CronFields, CronSchedule } from "../../api/batch/cron-job/schedule.ts";
import { fromLocalTime, type LocalTime, toLocalTime } from "./zoned-time.ts";

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** A schedule without a run in this time (February 31st) has none. */
const YEARS_MAX = 5;

/** Milliseconds since 1970, after `time`; undefined if there is none. The zone decides where the fields apply. */
export function nextRun(schedule: CronSchedule, time: number, zone: string): number | undefined {
  if ("everyNanos" in schedule) {
    const seconds = schedule.everyNanos / 1_000_000_000n;
    return Math.floor(time / SECOND_MS) * SECOND_MS + Math.max(1, Number(seconds)) * SECOND_MS;
  }
  // The first full minute after the time.
  let at = Math.floor(time / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  const lastYear = toLocalTime(at, zone).year + YEARS_MAX;
  for (;;) {
    const local = toLocalTime(at, zone);
    if (local.year > lastYear) return undefined;
    const candidate = nextCandidate(schedule, at, local, zone);
    if (candidate === undefined) return at;
    // Where midnight does not exist, the beginning of a month may be before it.
    at = Math.max(candidate, at + MINUTE_MS);
  }
}

/** The beginning of the next value of the first field that does not match; undefined if all match. */
function nextCandidate(schedule: CronFields, at: number, local: LocalTime, zone: string): number | undefined {
  const { months, hours, minutes } = schedule;
  if (!months.values.has(local.month)) {
    return fromLocalTime({ year: local.year, month: local.month + 1, day: 1 }, zone);
  }
  if (!matchesDay(schedule, local)) return nextDay(local, zone);
  // Hours are counted in real time: one that a transition skips has no run, one that it repeats has two.
  if (!hours.values.has(local.hour)) return at - local.minute * MINUTE_MS + HOUR_MS;
  return minutes.values.has(local.minute) ? undefined : at + MINUTE_MS;
}

/** Where midnight does not exist, the first hour of the day. */
function nextDay({ year, month, day }: LocalTime, zone: string): number {
  const at = fromLocalTime({ year, month, day: day + 1 }, zone);
  const { hour } = toLocalTime(at, zone);
  return hour > 12 ? at + (24 - hour) * HOUR_MS : at - hour * HOUR_MS;
}

/** If both day fields are restricted, a day that matches one of them is enough. */
function matchesDay({ daysOfMonth, daysOfWeek }: CronFields, { day, weekday }: LocalTime): boolean {
  const [inMonth, inWeek] = [daysOfMonth.values.has(day), daysOfWeek.values.has(weekday)];
  return daysOfMonth.any || daysOfWeek.any ? inMonth && inWeek : inMonth || inWeek;
}
