import t from "tap";
import { formatAge, humanDuration } from "./human-duration.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

t.test("humanDuration() formats durations as kubectl does", async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [-2 * second, "<invalid>"],
    [-second, "0s"],
    [0, "0s"],
    [119 * second, "119s"],
    [2 * minute, "2m"],
    [2 * minute + second, "2m1s"],
    [10 * minute, "10m"],
    [179 * minute, "179m"],
    [3 * hour, "3h"],
    [3 * hour + 5 * minute, "3h5m"],
    [8 * hour + minute, "8h"],
    [47 * hour, "47h"],
    [2 * day, "2d"],
    [2 * day + hour, "2d1h"],
    [8 * day + hour, "8d"],
    [2 * year - hour, "729d"],
    [2 * year + day, "2y1d"],
    [8 * year + day, "8y"],
  ];
  for (const [span, text] of cases) t.equal(humanDuration(span), text);
});

t.test("formatAge() returns <unknown> for a missing or invalid time", async (t) => {
  t.equal(formatAge(undefined, 0), "<unknown>");
  t.equal(formatAge("yesterday", 0), "<unknown>");
  t.equal(formatAge("1970-01-01T00:00:00Z", 5 * second), "5s");
});
