import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { createLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { startCollector } from "../../testing/tracing/collector.ts";
import { addEvent } from "../span.ts";
import { Tracer } from "../tracer.ts";

const resource = { "service.name": "apiserver" };

function setUp(endpoint: string, clock = new FakeClock()) {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const log = createLogger({}, { clock, stderr });
  const tracer = new Tracer(
    { endpoint, samplingRatePerMillion: 1_000_000 },
    { clock, log, random: seededRandom(1), resource },
  );
  const record = (name: string): void => tracer.start({ name }).end();
  return { tracer, record, clock, lines };
}

/** Advances the fake clock, and lets the calls over the network proceed. */
async function pass(clock: FakeClock, isDone: () => boolean, stepMs = 1000): Promise<void> {
  const wait = async (): Promise<void> => {
    await clock.advance(stepMs);
    await nextTurn();
  };
  await until("the export", () => isDone(), { wait });
}

t.test("spans reach the collector with all their parts", async (t) => {
  const collector = await startCollector(t);
  const { tracer, clock } = setUp(collector.endpoint);
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const remote = { traceId, spanId: "00f067aa0ba902b7", sampled: true, traceState: "a=1", baggage: "" };
  const attributes = { text: "ä", empty: "", count: -3, share: 0.5, flag: true, list: ["a", "b"] };
  await tracer.start({ name: "GET /api/v1/pods", kind: "server", attributes }, { remote }).run(async () => {
    await clock.advance(250);
    addEvent("step", { len: 12 });
  });
  tracer.start({ name: "failed" }).fail(new Error("boom"));
  await tracer[Symbol.asyncDispose]();
  const [span, failed] = collector.spans;
  t.match(span, {
    service: "apiserver",
    scope: "k8s.io/component-base/tracing",
    traceId: /^[0-9a-f]{32}$/,
    spanId: /^[0-9a-f]{16}$/,
    parentId: "",
    name: "GET /api/v1/pods",
    kind: 2,
    startNanoseconds: BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n,
    endNanoseconds: BigInt(Date.UTC(2026, 0, 1) + 250) * 1_000_000n,
    events: [{ name: "step", attributes: { len: 12 } }],
    links: [traceId],
    status: 0,
  });
  t.same(span?.attributes, attributes);
  t.match(failed, { name: "failed", status: 2 });
});

t.test("a batch is sent after 5 s, or as soon as it is full", async (t) => {
  const collector = await startCollector(t);
  const { tracer, record, clock } = setUp(collector.endpoint);
  record("one");
  await clock.advance(4999);
  t.equal(collector.calls, 0);
  await clock.advance(1);
  await until("the collector's response", () => collector.spans.length === 1);
  for (let index = 0; index < 512; index++) record("many");
  await until("the collector's response", () => collector.spans.length === 513);
  t.equal(collector.calls, 2);
  await tracer[Symbol.asyncDispose]();
  t.equal(clock.pending, 0);
});

t.test("a collector that is down gets the spans later; the queue is bounded and one error is logged", async (t) => {
  const collector = await startCollector(t);
  collector.respond = grpc.status.UNAVAILABLE;
  const { tracer, record, clock, lines } = setUp(collector.endpoint);
  for (let index = 0; index < 5000; index++) record("a");
  await until("the collector's response", () => lines.length > 0);
  t.match(lines[0], /Failed to export traces.*code = UNAVAILABLE desc = refused/);
  await pass(clock, () => collector.calls > 2);
  t.equal(lines.length, 1);
  collector.respond = Buffer.alloc(0);
  // A batch in flight and a full queue.
  await pass(clock, () => collector.spans.length >= 2560);
  t.equal(collector.spans.length, 2560);
  t.match(lines[1], /Exported traces again.*droppedSpans=2440/);
  await tracer[Symbol.asyncDispose]();
});

t.test("after a minute without the collector a batch is dropped", async (t) => {
  const { tracer, record, clock, lines } = setUp("127.0.0.1:1");
  record("lost");
  await pass(clock, () => clock.pending === 0 && lines.length > 0, 5000);
  t.match(lines[0], /Failed to export traces/);
  await tracer[Symbol.asyncDispose]();
});

t.test("a collector that never responds does not keep the program from stopping", async (t) => {
  const collector = await startCollector(t);
  collector.respond = "never";
  const { tracer, record, clock } = setUp(collector.endpoint);
  record("a");
  await clock.advance(5000);
  await until("the collector's response", () => collector.calls === 1);
  record("b");
  const stopped = tracer[Symbol.asyncDispose]();
  let hasStopped = false;
  void stopped.then(() => {
    hasStopped = true;
  });
  await pass(clock, () => hasStopped);
  t.equal(clock.pending, 0);
});

t.test("garbage and rejections are errors that are not retried", async (t) => {
  const collector = await startCollector(t);
  const garbage = [
    [Buffer.from("ff".repeat(20), "hex"), /Failed to export traces/],
    [Buffer.from([0x0a, 0xff, 0xff, 0x03]), /Failed to export traces/],
    [Buffer.concat([Buffer.from([0x0a, 7, 0x08, 2, 0x12, 3]), Buffer.from("why")]), /rejected 2 spans: why/],
    [grpc.status.INVALID_ARGUMENT, /code = INVALID_ARGUMENT/],
  ] as const;
  for (const [respond, expected] of garbage) {
    collector.respond = respond;
    const { tracer, record, lines } = setUp(collector.endpoint);
    const before = collector.calls;
    record("a");
    await tracer[Symbol.asyncDispose]();
    t.match(lines[0], expected);
    t.equal(collector.calls, before + 1);
  }
});

t.test("collectors at Unix sockets, named and abstract", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-otlp-"));
  t.teardown(() => rm(directory, { recursive: true }));
  const collector = await startCollector(t, `unix://${join(directory, "s")}`);
  const { tracer, record } = setUp(collector.endpoint);
  record("a");
  await tracer[Symbol.asyncDispose]();
  t.equal(collector.spans.length, 1);
  const abstract = await startCollector(t, `unix:\0svc-otlp-${process.pid}`);
  const other = setUp(`unix-abstract:svc-otlp-${process.pid}`);
  other.record("b");
  await other.tracer[Symbol.asyncDispose]();
  t.equal(abstract.spans.length, 1);
});

t.test("nothing is left behind with the system's clock", async (t) => {
  const tracer = new Tracer({ endpoint: "127.0.0.1:1" }, { clock: systemClock, log: createLogger(), resource });
  tracer.start({ name: "not sampled" }).end();
  await t.resolves(tracer[Symbol.asyncDispose]());
});
