/** Which run of a cron job is due. */
import type { CronSchedule } from "../../api/batch/cron-job/schedule.ts";
import { nextRun } from "./next-run.ts";

/** More missed runs than this are reported. */
const MISSED_MAX = 100;
/** Added to the time of the next run, so that it is due when the timer fires. */
const NEXT_RUN_DELAY_MS = 100;

/** Times in milliseconds since 1970. */
export interface RunTimes {
  readonly schedule: CronSchedule;
  readonly zone: string;
  /** The last run, or the creation of the cron job. */
  readonly since: number;
  readonly now: number;
  readonly startingDeadlineSeconds: number | undefined;
}

export interface DueRun {
  /** The latest run that is due; undefined if none is. */
  readonly time: number | undefined;
  readonly tooManyMissed: boolean;
}

/** The error of a schedule without runs. */
export class NoRunError extends Error {}

/** Runs before the starting deadline are ignored. Throws a `NoRunError`. */
export function dueRun({ startingDeadlineSeconds, since, ...times }: RunTimes): DueRun {
  const deadline = startingDeadlineSeconds === undefined ? since : times.now - startingDeadlineSeconds * 1000;
  const { time, missed } = latestRun({ ...times, since: Math.max(since, deadline) });
  return { time, tooManyMissed: time !== undefined && missed > MISSED_MAX };
}

/** Milliseconds until the next run. */
export function untilNextRun(times: RunTimes): number {
  const { schedule, zone, now, since } = times;
  const from = (): number => {
    try {
      const { time, missed } = latestRun(times);
      return time ?? (missed > 0 ? now : since);
    } catch (error) {
      if (error instanceof NoRunError) return now;
      throw error;
    }
  };
  const next = nextRun(schedule, from(), zone);
  return next === undefined ? Infinity : next + NEXT_RUN_DELAY_MS - now;
}

/** The number of missed runs is estimated from the distance of the first two. */
function latestRun({ schedule, zone, since, now }: Omit<RunTimes, "startingDeadlineSeconds">): {
  readonly time: number | undefined;
  readonly missed: number;
} {
  const first = nextRun(schedule, since, zone);
  const second = first === undefined ? undefined : nextRun(schedule, first, zone);
  if (first !== undefined && now < first) return { time: undefined, missed: 0 };
  if (first !== undefined && second !== undefined && now < second) return { time: first, missed: 0 };
  if (first === undefined || second === undefined) {
    throw new NoRunError("time difference between two schedules is less than 1 second");
  }
  const interval = Math.round((second - first) / 1000) * 1000;
  const missed = Math.floor((now - first) / interval) + 1;
  let latest: number | undefined;
  let candidate = nextRun(schedule, first + (missed - 2) * interval, zone);
  while (candidate !== undefined && candidate <= now) {
    latest = candidate;
    candidate = nextRun(schedule, candidate, zone);
  }
  return { time: latest, missed };
}
