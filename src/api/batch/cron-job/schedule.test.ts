import t from "tap";
import { type CronFields, parseCronSchedule } from "./schedule.ts";

function fields(text: string): CronFields {
  const schedule = parseCronSchedule(text);
  if ("everyNanos" in schedule) throw new Error(`${text} is a period`);
  return schedule;
}

const list = (values: ReadonlySet<number>): readonly number[] => [...values].sort((a, b) => a - b);

t.test("parseCronSchedule() parses numbers, names, ranges, steps and lists", async (t) => {
  const { minutes, hours, daysOfMonth, months, daysOfWeek } = fields("*/20 9-11,22 31/1 JAN-mar mon-fri/2");
  t.same(list(minutes.values), [0, 20, 40]);
  t.equal(minutes.any, false, "every twentieth is not any");
  t.same(list(hours.values), [9, 10, 11, 22]);
  t.same(list(daysOfMonth.values), [31], "a number with a step starts a range to the maximum");
  t.same(list(months.values), [1, 2, 3]);
  t.same(list(daysOfWeek.values), [1, 3, 5]);
  t.equal(fields("* * ? * *").daysOfMonth.any, true);
  t.same(list(fields("@weekly").daysOfWeek.values), [0]);
  t.same(parseCronSchedule("@every 1h30m"), { everyNanos: 5_400_000_000_000n });
  t.same(parseCronSchedule("TZ=UTC 0 0 * * *"), parseCronSchedule("@daily"), "a zone is passed over");
});

t.test("parseCronSchedule() throws Kubernetes' messages", async (t) => {
  const cases = [
    ["", "empty spec string"],
    ["* * *", "expected exactly 5 fields, found 3: [* * *]"],
    ["60 * * * *", "end of range (60) above maximum (59): 60"],
    ["* * 0 * *", "beginning of range (0) below minimum (1): 0"],
    ["5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"],
    ["*/0 * * * *", "step of range should be a positive number: */0"],
    ["1-2-3 * * * *", "too many hyphens: 1-2-3"],
    ["1/2/3 * * * *", "too many slashes: 1/2/3"],
    ["x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
    ["@noon", "unrecognized descriptor: @noon"],
    ["@constructor", "unrecognized descriptor: @constructor"],
    ["@every day", 'failed to parse duration @every day: time: invalid duration "day"'],
  ] as const;
  for (const [text, message] of cases) t.throws(() => parseCronSchedule(text), { message }, text);
});
