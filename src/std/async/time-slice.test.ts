import t from "tap";
import { TimeSlice } from "./time-slice.ts";

t.test("TimeSlice lets the event loop turn after long computations only", async (t) => {
  const slice = new TimeSlice();
  t.equal(slice.yield(), undefined);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  for (let step = 0; step < 5; step++) {
    const began = performance.now();
    while (performance.now() - began < 25);
    await slice.yield();
  }
  clearInterval(timer);
  t.ok(turns >= 4, `${turns} turns`);
});
