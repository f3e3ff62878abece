import t from "tap";
import { cpuMicroseconds, heapBytes } from "./measure.ts";

t.test("cpuMicroseconds() measures calls, after calls to warm up", (t) => {
  let calls = 0;
  const light = cpuMicroseconds(() => calls++, 100);
  t.equal(calls, 600);
  t.ok(light >= 0 && Number.isFinite(light));
  t.end();
});

t.test("heapBytes() calls the function fifty times", (t) => {
  let calls = 0;
  t.ok(Number.isInteger(heapBytes(() => calls++)));
  t.equal(calls, 50);
  t.end();
});
