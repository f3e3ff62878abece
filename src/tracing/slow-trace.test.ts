import t from "tap";
import { createLogger } from "../std/log/logger.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { createSlowTraceLogger } from "./slow-trace.ts";
import { addEvent, inSpan, SLOW_MS, Trace } from "./span.ts";

process.env.TZ = "UTC";
const START = Date.UTC(2026, 9, 25, 0, 15, 15, 525);

function setUp(verbosity: number) {
  const lines: string[] = [];
  const clock = new FakeClock(START);
  const stderr = { write: (line: string) => lines.push(line.replace(/^.*?\] /, "")), flushSync: () => {} };
  const log = createLogger({ verbosity }, { clock, stderr });
  const onSlow = createSlowTraceLogger(log, clock, { bytes: () => new Uint8Array(), fraction: () => 0.5 });
  const trace = (): Trace => new Trace({ clock, onSlow });
  return { lines, clock, trace };
}

t.test("a span over 500 ms is logged with its slow steps, as utiltrace prints them", async (t) => {
  const { lines, clock, trace } = setUp(2);
  const attributes = { "audit-id": "a", url: "/api/v1/pods\nI1025 forged" };
  await trace()
    .start({ name: "Create", attributes }, SLOW_MS)
    .run(async () => {
      addEvent("limitedReadBody succeeded", { len: 12 });
      await clock.advance(1);
      addEvent("Conversion done");
      await inSpan("Create etcd3", { key: "/registry/pods/a" }, async () => {
        await clock.advance(100);
        addEvent("Encode succeeded");
        await clock.advance(600.25);
        addEvent("Txn call succeeded");
      });
      await clock.advance(300);
      addEvent("Write to database call succeeded", { len: 12 });
    });
  t.same(lines, [
    'Trace[1073741824]: "Create" audit-id:a,url:/api/v1/pods I1025 forged (25-Oct-2026 00:15:15.525) (total time: 1001ms):\n' +
      'Trace[1073741824]: ["Create etcd3" key:/registry/pods/a 700ms (00:15:15.526)\n' +
      'Trace[1073741824]:  ---"Txn call succeeded" 600ms (00:15:16.226)]\n' +
      'Trace[1073741824]: ---"Write to database call succeeded" len:12 300ms (00:15:16.526)\n' +
      "Trace[1073741824]: [1.00125s] [1.00125s] END\n",
  ]);
});

t.test("at -v=4 all steps are logged; a span under 500 ms never is", async (t) => {
  const { lines, clock, trace } = setUp(4);
  await trace()
    .start({ name: "Get" }, SLOW_MS)
    .run(async () => {
      addEvent("fast");
      await clock.advance(SLOW_MS);
    });
  await trace()
    .start({ name: "Get" }, SLOW_MS)
    .run(() => clock.advance(SLOW_MS - 1));
  t.equal(lines.length, 1);
  t.match(lines[0], 'Trace[1073741824]: ---"fast" 0ms (00:15:15.525)\n');
});

t.test("below -v=2 at most ten slow spans a second are logged", async (t) => {
  for (const [verbosity, expected] of [
    [0, 10],
    [2, 30],
  ] as const) {
    const { lines, clock, trace } = setUp(verbosity);
    const spans = Array.from({ length: 30 }, () => trace().start({ name: "List" }, SLOW_MS));
    await clock.advance(1000);
    for (const span of spans) span.end();
    t.equal(lines.length, expected);
  }
});
