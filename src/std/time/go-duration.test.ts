import t from "tap";
import { formatGoDuration } from "./go-duration.ts";

t.test("formatGoDuration() prints durations as Go does", async (t) => {
  const rows: readonly (readonly [number, string])[] = [
    [0, "0s"],
    [0.000_5, "500ns"],
    [0.25, "250µs"],
    [12.5, "12.5ms"],
    [612.345, "612.345ms"],
    [1500, "1.5s"],
    [60_000, "1m0s"],
    [3_662_500, "1h1m2.5s"],
    [-2000, "-2s"],
  ];
  for (const [ms, text] of rows) t.equal(formatGoDuration(ms), text);
});
