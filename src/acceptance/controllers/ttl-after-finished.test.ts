import t from "tap";
import { jobKind } from "../../api/batch/job/kind.ts";
import type { Job } from "../../api/batch/job/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { formatTime } from "../../schema/value/time.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const namespace = "default";

async function finishedJob(client: Client, clock: FakeClock, name: string, ttl: number | undefined): Promise<Job> {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "a", image: "web:1" }] } } as const;
  const spec = { template, ...(ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl }) };
  const created = await client.create(jobKind, { metadata: { name, namespace }, spec } as Job);
  const lastTransitionTime = formatTime(clock.now());
  const conditions = (["SuccessCriteriaMet", "Complete"] as const).map((type) => ({
    type,
    status: "True" as const,
    lastTransitionTime,
  }));
  const times = { startTime: lastTransitionTime, completionTime: lastTransitionTime };
  return await client.updateStatus(jobKind, { ...created, status: { ...times, succeeded: 1, conditions } });
}

async function stateOf(client: Client, name: string): Promise<"there" | "leaving" | "gone"> {
  try {
    const { metadata } = await client.get(jobKind, { name, namespace });
    return metadata?.deletionTimestamp === undefined ? "there" : "leaving";
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 404) return "gone";
    throw error;
  }
}

t.test("finished jobs are deleted after their ttlSecondsAfterFinished", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(
    t,
    { embeddedControllers: ["ttl-after-finished", "garbage-collector"] },
    clock,
  );
  await clock.advance(100);
  await finishedJob(client, clock, "soon", 10);
  await finishedJob(client, clock, "later", 3600);
  await finishedJob(client, clock, "never", undefined);
  const putOff = await finishedJob(client, clock, "put-off", 10);
  await client.update(jobKind, { ...putOff, spec: { ...putOff.spec!, ttlSecondsAfterFinished: 100 } });
  await clock.advance(9_000);
  t.equal(await stateOf(client, "soon"), "there");
  await clock.advance(2_000);
  t.equal(await stateOf(client, "soon"), "gone");
  t.equal(await stateOf(client, "put-off"), "there");
  await clock.advance(100_000);
  t.equal(await stateOf(client, "put-off"), "gone");
  t.equal(await stateOf(client, "later"), "there");
  await clock.advance(3_600_000);
  t.equal(await stateOf(client, "later"), "gone");
  t.equal(await stateOf(client, "never"), "there");
});

t.test("finished jobs stay without the controller", async (t) => {
  const clock = new FakeClock();
  const client = await startInMemoryCluster(t, { embeddedControllers: ["namespace"] }, clock);
  await finishedJob(client, clock, "soon", 10);
  await clock.advance(60_000);
  t.equal(await stateOf(client, "soon"), "there");
});
