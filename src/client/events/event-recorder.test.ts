import t from "tap";
import type { Event } from "../../api/core/event/schema.ts";
import { StatusError } from "../../api/status.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Client } from "../client.ts";
import { createEventRecorder, type EventRecorderOptions } from "./event-recorder.ts";

const pod = { kind: "Pod", namespace: "ns", name: "web", uid: "1", apiVersion: "v1" };

function setUp(options: Partial<EventRecorderOptions> = {}) {
  const clock = new FakeClock();
  const created: Event[] = [];
  const patched: { readonly name: string; readonly patch: unknown }[] = [];
  const failures: unknown[] = [];
  const warnings: string[] = [];
  const fail = () => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
  };
  const client: Partial<Client> = {
    create: async (_: unknown, object: unknown) => {
      fail();
      created.push(object as Event);
      return object as never;
    },
    patch: async (_: unknown, name: { name: string }, __: unknown, patch: unknown) => {
      fail();
      patched.push({ name: name.name, patch });
      return {} as never;
    },
  };
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
  const recorder = createEventRecorder({
    client: client as Client,
    clock,
    random: seededRandom(1),
    log,
    component: "svclet",
    host: "n1",
    ...options,
  });
  return { clock, created, patched, failures, warnings, recorder };
}

t.test("EventRecorder.record() creates an event, and increments its count when it repeats", async (t) => {
  const { clock, created, patched, recorder } = setUp();
  recorder.record(pod, "Normal", "Started", "Started container c");
  t.equal(created.length, 0, "recording does not wait");
  await recorder.flush();
  t.match(created, [
    {
      metadata: { namespace: "ns", name: /^web\.[0-9a-z]+$/ },
      involvedObject: pod,
      reason: "Started",
      message: "Started container c",
      source: { component: "svclet", host: "n1" },
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      count: 1,
      type: "Normal",
      reportingComponent: "svclet",
      reportingInstance: "n1",
    },
  ]);
  await clock.advance(90_000);
  recorder.record(pod, "Normal", "Started", "Started container c");
  recorder.record(pod, "Warning", "Started", "Started container c");
  recorder.record({ kind: "Node", name: "n1" }, "Normal", "Ready", "ready");
  await recorder.flush();
  t.strictSame(patched, [
    {
      name: created[0]?.metadata.name,
      patch: { count: 2, message: "Started container c", lastTimestamp: "2026-01-01T00:01:30Z" },
    },
  ]);
  t.equal(created.length, 3);
  t.equal(created[2]?.metadata.namespace, "default");
});

t.test("EventRecorder.record() creates an event with a name once, also after a restart", async (t) => {
  const first = setUp();
  first.recorder.record(pod, "Warning", "Evicted", "low on memory", { name: "web.1", annotations: { a: "b" } });
  await first.recorder.flush();
  t.match(first.created, [{ metadata: { name: "web.1", annotations: { a: "b" } } }]);
  const { recorder, failures, created, warnings } = setUp();
  const exists = new StatusError(409, "AlreadyExists", 'events "web.1" already exists');
  failures.push(exists);
  recorder.record(pod, "Warning", "Evicted", "low on memory", { name: "web.1" });
  await recorder.flush();
  t.same([created, warnings], [[], []]);
  failures.push(exists);
  recorder.record(pod, "Warning", "Evicted", "low on disk");
  await recorder.flush();
  t.same(warnings, ["Failed to send event"], "a name that was chosen at random");
});

t.test("EventRecorder.record() combines many similar events", async (t) => {
  const { created, patched, recorder } = setUp();
  for (let count = 0; count < 14; count++) recorder.record(pod, "Warning", "Failed", `attempt ${count}`);
  await recorder.flush();
  t.equal(created.length, 10);
  t.equal(created[9]?.message, "(combined from similar events): attempt 9");
  t.match(patched.at(-1)?.patch, { count: 5, message: "(combined from similar events): attempt 13" });
});

t.test("EventRecorder.record() limits the events of one object", async (t) => {
  const { clock, created, patched, recorder } = setUp();
  for (let count = 0; count < 100; count++) recorder.record(pod, "Warning", "Failed", "again");
  await recorder.flush();
  t.equal(created.length + patched.length, 25);
  await clock.advance(301_000);
  recorder.record(pod, "Warning", "Failed", "again");
  recorder.record(pod, "Warning", "Failed", "again");
  await recorder.flush();
  t.equal(created.length + patched.length, 26);
});

t.test("EventRecorder limits the rate of requests", async (t) => {
  const { clock, created, recorder } = setUp({ qps: 2, burst: 3 });
  for (let count = 0; count < 6; count++) recorder.record({ ...pod, name: `p${count}` }, "Normal", "R", "m");
  await clock.advance(0);
  t.equal(created.length, 3);
  await clock.advance(500);
  t.equal(created.length, 4);
  await clock.advance(1000);
  t.equal(created.length, 6);
  t.equal(clock.pending, 0);
});

t.test("EventRecorder retries while the server is unavailable, and drops events that it rejects", async (t) => {
  const { clock, created, failures, warnings, recorder } = setUp();
  failures.push(new Error("ECONNREFUSED"), new StatusError(503, "ServiceUnavailable", "busy"));
  recorder.record(pod, "Normal", "A", "m");
  await clock.advance(20_000);
  t.equal(created.length, 1);
  failures.push(new StatusError(403, "Forbidden", "namespace is going"));
  recorder.record(pod, "Normal", "B", "m");
  recorder.record(pod, "Normal", "C", "m");
  await recorder.flush();
  t.equal(created.length, 2);
  t.strictSame(warnings, ["Failed to send event"]);
  // The server has deleted the event.
  failures.push(new StatusError(404, "NotFound", "gone"));
  recorder.record(pod, "Normal", "A", "m");
  await recorder.flush();
  t.equal(created.length, 3);
  t.equal(created[2]?.count, 2);
  t.not(created[2]?.metadata.name, created[0]?.metadata.name);
});

t.test(
  "EventRecorder drops events beyond its queue, truncates long messages, and stops when it is closed",
  async (t) => {
    const { clock, created, failures, warnings, recorder } = setUp({ qps: 0 });
    recorder.record(pod, "Normal", "Long", "ä".repeat(20_000));
    await recorder.flush();
    const message = created[0]?.message ?? "";
    t.ok(Buffer.byteLength(message) <= 12 * 1024 && message.endsWith("ä..."));
    failures.push(new Error("down"));
    for (let count = 0; count < 1200; count++) recorder.record({ ...pod, name: `p${count}` }, "Normal", "R", "m");
    t.strictSame(warnings, ["Dropping events: the queue is full"]);
    await clock.advance(0);
    await recorder[Symbol.asyncDispose]();
    recorder.record(pod, "Normal", "R", "m");
    await clock.advance(60_000);
    t.equal(created.length, 1);
    t.equal(clock.pending, 0);
  },
);
