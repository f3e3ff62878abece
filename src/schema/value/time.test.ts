import fc from "fast-check";
import t from "tap";
import {
  canonicalizeTime,
  formatDuration,
  formatInstant,
  formatMicroTime,
  formatTime,
  parseDuration,
  parseInstant,
} from "./time.ts";

t.test("canonicalizeTime() converts to UTC with the decimals of the type", async (t) => {
  t.equal(canonicalizeTime("2026-01-02T03:04:05Z", false), "2026-01-02T03:04:05Z");
  t.equal(canonicalizeTime("2026-01-02T03:04:05+02:00", false), "2026-01-02T01:04:05Z");
  t.equal(canonicalizeTime("2026-01-01T00:04:05.999-00:30", false), "2026-01-01T00:34:05Z");
  t.equal(canonicalizeTime("2026-01-02T03:04:05Z", true), "2026-01-02T03:04:05.000000Z");
  t.equal(canonicalizeTime("2026-01-02T03:04:05.1234567Z", true), "2026-01-02T03:04:05.123456Z");
  t.equal(canonicalizeTime("2024-02-29T00:00:00Z", false), "2024-02-29T00:00:00Z");
  t.equal(canonicalizeTime("0001-01-01T00:00:00Z", false), "0001-01-01T00:00:00Z");
});

t.test("formatTime() and formatMicroTime() format milliseconds as metav1 does", async (t) => {
  const moment = Date.UTC(2026, 0, 2, 3, 4, 5) + 678;
  t.equal(formatTime(moment), "2026-01-02T03:04:05Z");
  t.equal(formatMicroTime(moment), "2026-01-02T03:04:05.678000Z");
  t.equal(formatTime(-1), "1969-12-31T23:59:59Z");
});

t.test("parseInstant() returns undefined for days and hours that do not exist", async (t) => {
  const bad = ["", "now", "2026-01-02", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2023-02-29T00:00:00Z"];
  const worse = ["2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-01T24:00:00Z"];
  for (const text of [
    ...bad,
    ...worse,
    "2026-01-01T00:60:00Z",
    "2026-01-01T00:00:00+25:00",
    "0000-01-01T00:00:00+01:00",
  ]) {
    t.equal(parseInstant(text), undefined, text);
  }
});

t.test("parseInstant() inverts formatInstant()", async (t) => {
  const instants = fc.record({
    seconds: fc.integer({ min: -62135596800, max: 253402300799 }),
    nanos: fc.integer({ min: 0, max: 999_999 }).map((micros) => micros * 1000),
  });
  fc.assert(
    fc.property(instants, (instant) => {
      const back = parseInstant(formatInstant(instant, true));
      return back?.seconds === instant.seconds && back.nanos === instant.nanos;
    }),
  );
  t.pass();
});

t.test("parseDuration() and formatDuration() use Go's format", async (t) => {
  const cases: Readonly<Record<string, string>> = {
    "0": "0s",
    "1h": "1h0m0s",
    "90s": "1m30s",
    "1.5s": "1.5s",
    "1500ms": "1.5s",
    "1h2m3.004s": "1h2m3.004s",
    "-1.5h": "-1h30m0s",
    "100us": "100µs",
    "100µs": "100µs",
    "7ns": "7ns",
    "+5m": "5m0s",
  };
  for (const [text, canonical] of Object.entries(cases)) t.equal(formatDuration(parseDuration(text) ?? -1n), canonical);
  for (const text of ["", "5", "-", "1x", "1 s", "h", "1h-1m", ".s", "9223372037s", "1d"]) {
    t.equal(parseDuration(text), undefined, text);
  }
});
