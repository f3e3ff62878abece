import t, { type Test } from "tap";
import type { Event } from "../../api/events/event/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Client } from "../client.ts";
import { createSeriesRecorder, type EventDetails } from "./series-recorder.ts";

const details: EventDetails = {
  regarding: { apiVersion: "v1", kind: "Pod", name: "p", namespace: "ns", uid: "u" },
  type: "Warning",
  reason: "FailedScheduling",
  action: "Scheduling",
  note: "no node fits",
  controller: "default-scheduler",
};

function createRecorder(t: Pick<Test, "teardown">, fail: (attempt: number) => Error | undefined = () => undefined) {
  const clock = new FakeClock();
  const created: Event[] = [];
  const patches: unknown[] = [];
  let attempts = 0;
  const client: Partial<Client> = {
    create: async (_kind, object) => {
      const error = fail(++attempts);
      if (error !== undefined) throw error;
      created.push(object as ApiObject as Event);
      return object;
    },
    patch: async (_kind, _name, _type, patch) => {
      patches.push(patch);
      return {} as never;
    },
  };
  const recorder = createSeriesRecorder({
    client: client as Client,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    instance: "default-scheduler-host",
  });
  t.teardown(() => recorder[Symbol.asyncDispose]());
  return { clock, created, patches, recorder, attempts: () => attempts };
}

t.test("an event is created once, and becomes a series with its first repetition", async (t) => {
  const { clock, created, patches, recorder } = createRecorder(t);
  recorder.record(details);
  await recorder.flush();
  t.match(created[0], {
    metadata: { name: /^p\.[0-9a-f]{16}$/, namespace: "ns" },
    reportingController: "default-scheduler",
    reportingInstance: "default-scheduler-host",
    eventTime: "2026-01-01T00:00:00.000000Z",
    note: "no node fits",
    regarding: { uid: "u" },
  });
  await clock.advance(1000);
  for (let count = 0; count < 3; count++) recorder.record({ ...details, note: "another note" });
  await recorder.flush();
  t.equal(created.length, 1);
  t.match(patches, [{ series: { count: 4 } }], "the count when it is sent");
  await clock.advance(13 * 60_000);
  t.equal(patches.length, 2, "the final count");
  recorder.record(details);
  await recorder.flush();
  t.equal(created.length, 2, "the series has ended");
});

t.test("events that differ in reason, action or related object are others", async (t) => {
  const { created, recorder } = createRecorder(t);
  recorder.record(details);
  recorder.record({ ...details, reason: "Preempted" });
  recorder.record({ ...details, related: { kind: "Pod", name: "other" } });
  recorder.record({ ...details, note: "x".repeat(2000), action: "Binding" });
  await recorder.flush();
  t.equal(created.length, 4);
  t.equal(created[3]?.note?.length, 1024);
});

t.test("an event is sent again after a failure that may pass, and not after others", async (t) => {
  const passing = createRecorder(t, (attempt) => (attempt < 3 ? new Error("connection refused") : undefined));
  passing.recorder.record(details);
  await passing.clock.advance(20_000);
  t.equal(passing.created.length, 1);
  const refused = createRecorder(t, () => new StatusError(403, "Forbidden", "no"));
  refused.recorder.record(details);
  await refused.recorder.flush();
  await refused.clock.advance(60_000);
  t.equal(refused.attempts(), 1);
});

t.test("when the queue is full, events are dropped", async (t) => {
  const { created, recorder } = createRecorder(t);
  for (let count = 0; count < 1500; count++) recorder.record({ ...details, reason: `Reason${count}` });
  await recorder.flush();
  t.ok(created.length >= 1000 && created.length < 1500);
});
