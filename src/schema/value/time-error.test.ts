import t from "tap";
import { explainTimeError } from "./time-error.ts";

t.test("explainTimeError() names the first part that does not fit, as Go does", async (t) => {
  const unparsed: Readonly<Record<string, readonly [rest: string, layout: string]>> = {
    "": ["", "2006"],
    foo: ["foo", "2006"],
    "2021": ["", "-"],
    "2021/01/01": ["/01/01", "-"],
    "2021-1-01T00:00:00Z": ["1-01T00:00:00Z", "01"],
    "2021-01-01": ["", "T"],
    "2021-01-01 00:00:00Z": [" 00:00:00Z", "T"],
    "2021-01-01T00:00": ["", ":"],
    "2021-01-01T00:00:00": ["", "Z07:00"],
    "2021-01-01T00:00:00.5": ["", "Z07:00"],
    "2021-01-01T00:00:00z": ["z", "Z07:00"],
    "2021-01-01T00:00:00+0100": ["+0100", "Z07:00"],
  };
  for (const [text, [rest, part]] of Object.entries(unparsed)) {
    const message = `parsing time "${text}" as "2006-01-02T15:04:05Z07:00": cannot parse "${rest}" as "${part}"`;
    t.equal(explainTimeError(text, false), message);
  }
  const others: Readonly<Record<string, string>> = {
    "2021-13-01T00:00:00Z": "month out of range",
    "2021-00-01T00:00:00Z": "month out of range",
    "2021-01-32T00:00:00Z": "day out of range",
    "2021-02-30T00:00:00Z": "day out of range",
    "2021-01-01T24:00:00Z": "hour out of range",
    "2021-01-01T00:60:00Z": "minute out of range",
    "2021-01-01T00:00:60Z": "second out of range",
    "2021-01-01T00:00:00Zx": 'extra text: "x"',
  };
  for (const [text, why] of Object.entries(others)) {
    t.equal(explainTimeError(text, false), `parsing time "${text}": ${why}`);
  }
  const layout = "2006-01-02T15:04:05.000000Z07:00";
  for (const rest of ["Z", ".5Z", ".12345Z", "+01:00"]) {
    const text = `2021-01-01T00:00:00${rest}`;
    t.equal(explainTimeError(text, true), `parsing time "${text}" as "${layout}": cannot parse "${rest}" as ".000000"`);
  }
});
