import t from "tap";
import { parseCronSchedule } from "../../api/batch/cron-job/schedule.ts";
import { dueRun, untilNextRun } from "./missed-runs.ts";
import { nextRun } from "./next-run.ts";
import { formatInZone } from "./zoned-time.ts";

const NEW_YORK = "America/New_York";

const cases: readonly (readonly [after: string, schedule: string, zone: string, next: string | undefined])[] = [
  ["2012-07-09T14:45:00Z", "0/15 * * * *", "UTC", "2012-07-09T15:00:00Z"],
  ["2012-07-09T14:59:59Z", "0/15 * * * *", "UTC", "2012-07-09T15:00:00Z"],
  ["2012-07-09T15:45:00Z", "20-35/15 * * * *", "UTC", "2012-07-09T16:20:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 9 Apr-Oct ?", "UTC", "2012-08-09T00:00:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 */5 Apr,Aug,Oct Mon", "UTC", "2012-08-01T00:00:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 1,15 * Sun", "UTC", "2012-07-15T00:00:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 * Feb Mon", "UTC", "2013-02-04T00:00:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 29 Feb ?", "UTC", "2016-02-29T00:00:00Z"],
  ["2012-07-09T23:35:00Z", "0 0 30 Feb ?", "UTC", undefined],
  ["2012-12-31T23:59:45Z", "* * * * *", "UTC", "2013-01-01T00:00:00Z"],
  ["2012-07-09T14:59:00.250Z", "@every 90s", "UTC", "2012-07-09T15:00:30Z"],
  ["2012-07-09T14:59:00Z", "@every 10ms", "UTC", "2012-07-09T14:59:01Z"],
  ["2012-07-09T14:59:00Z", "@weekly", "UTC", "2012-07-15T00:00:00Z"],
  // The hour after 2012-03-11T01:59-05:00 is 03:00-04:00.
  ["2012-03-11T05:00:00Z", "30 2 11 Mar ?", NEW_YORK, "2013-03-11T02:30:00-04:00"],
  ["2012-03-11T06:00:00Z", "0 * * * *", NEW_YORK, "2012-03-11T03:00:00-04:00"],
  ["2012-03-11T05:00:00Z", "0 2 * * *", NEW_YORK, "2012-03-12T02:00:00-04:00"],
  ["2012-03-11T05:00:00Z", "0 1 * * *", NEW_YORK, "2012-03-11T01:00:00-05:00"],
  // The hour after 2012-11-04T01:59-04:00 is 01:00-05:00.
  ["2012-11-04T05:45:00Z", "30 1 04 Nov ?", NEW_YORK, "2012-11-04T01:30:00-05:00"],
  ["2012-11-04T04:00:00Z", "0 1 * * *", NEW_YORK, "2012-11-04T01:00:00-04:00"],
  ["2012-11-04T05:00:00Z", "0 1 * * *", NEW_YORK, "2012-11-04T01:00:00-05:00"],
  ["2012-11-04T06:00:00Z", "0 * * * *", NEW_YORK, "2012-11-04T02:00:00-05:00"],
  ["2012-11-04T04:00:00Z", "0 3 3 * ?", NEW_YORK, "2012-12-03T03:00:00-05:00"],
  // Midnight of 2018-11-04 does not exist, that of 2018-02-18 is repeated as the hour before it.
  ["2018-10-17T09:00:00Z", "0 9 10 * ?", "America/Sao_Paulo", "2018-11-10T09:00:00-02:00"],
  ["2018-11-03T12:00:00Z", "30 1 * * *", "America/Sao_Paulo", "2018-11-04T01:30:00-02:00"],
  ["2018-11-03T12:00:00Z", "0 0 4 11 *", "America/Sao_Paulo", "2019-11-04T00:00:00-03:00"],
  ["2018-02-14T10:00:00Z", "0 9 22 * ?", "America/Sao_Paulo", "2018-02-22T09:00:00-03:00"],
  // Zones that are not whole hours from UTC.
  ["2024-05-01T00:10:00Z", "0 9 * * *", "Asia/Kathmandu", "2024-05-01T09:00:00+05:45"],
  ["2024-05-01T00:10:00Z", "15 * * * *", "Asia/Kolkata", "2024-05-01T06:15:00+05:30"],
  // The first day of a month begins at 1:00.
  ["2022-09-30T12:00:00Z", "5 3 * 10 *", "America/Asuncion", "2022-10-01T03:05:00-04:00"],
];

for (const [after, text, zone, expected] of cases) {
  t.test(`${text} in ${zone} after ${after} runs at ${expected}`, async (t) => {
    const next = nextRun(parseCronSchedule(text), Date.parse(after), zone);
    t.equal(next === undefined ? undefined : formatInZone(next, zone), expected);
  });
}

function times(schedule: string, since: string, now: string, startingDeadlineSeconds?: number) {
  const parsed = parseCronSchedule(schedule);
  return { schedule: parsed, zone: "UTC", since: Date.parse(since), now: Date.parse(now), startingDeadlineSeconds };
}

const due: readonly (readonly [
  schedule: string,
  since: string,
  now: string,
  deadline: number | undefined,
  run: string | undefined,
  tooMany: boolean,
])[] = [
  ["0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T10:59:59Z", undefined, undefined, false],
  ["0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z", undefined, "2024-05-01T11:00:00.000Z", false],
  ["0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T15:30:00Z", undefined, "2024-05-01T15:00:00.000Z", false],
  ["* * * * *", "2024-05-01T10:00:00Z", "2024-05-01T12:00:00Z", undefined, "2024-05-01T12:00:00.000Z", true],
  ["* * * * *", "2024-05-01T10:00:00Z", "2024-05-01T12:00:00Z", 600, "2024-05-01T12:00:00.000Z", false],
  ["0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T15:30:00Z", 600, undefined, false],
  ["30 6-16/4 * * 1-5", "2024-04-30T07:00:00Z", "2024-05-01T10:45:00Z", undefined, "2024-05-01T10:30:00.000Z", false],
  ["@every 1h", "2024-05-01T10:17:00Z", "2024-05-01T15:30:00Z", undefined, "2024-05-01T15:17:00.000Z", false],
];
for (const [schedule, since, now, deadline, run, tooManyMissed] of due) {
  t.test(`of ${schedule} the run ${run} is due at ${now}, deadline ${deadline}`, async (t) => {
    const found = dueRun(times(schedule, since, now, deadline));
    const time = found.time === undefined ? undefined : new Date(found.time).toISOString();
    t.strictSame({ time, tooManyMissed: found.tooManyMissed }, { time: run, tooManyMissed });
  });
}

t.test("a schedule without runs is an error, and there is no next run", async (t) => {
  const never = times("59 23 31 2 *", "2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z");
  t.throws(() => dueRun(never), { message: "time difference between two schedules is less than 1 second" });
  t.equal(untilNextRun(never), Infinity);
});

t.test("the next run is a tenth of a second after the time of the schedule", async (t) => {
  t.equal(untilNextRun(times("0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T10:59:00Z")), 60_100);
  t.equal(untilNextRun(times("0 * * * *", "2024-05-01T10:00:00Z", "2024-05-01T15:30:00Z")), 1_800_100);
});
