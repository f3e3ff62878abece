import t from "tap";
import { cpuMicroseconds, heapBytes } from "./measure.ts";

t.test("cpuMicroseconds() counts what calls take, and calls a while to warm up", (t) => {
  let calls = 0;
  const light = cpuMicroseconds(() => calls++, 100);
  t.equal(calls, 600);
  t.ok(light >= 0 && Number.isFinite(light));
  t.end();
});

t.test("heapBytes() counts what calls leave on the heap", (t) => {
  const kept: Uint8Array[][] = [];
  t.ok(heapBytes(() => kept.push(Array.from({ length: 1000 }, () => new Uint8Array(0)))) > 1000);
  t.end();
});
