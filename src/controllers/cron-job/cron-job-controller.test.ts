import t from "tap";
import { cronJobKind } from "../../api/batch/cron-job/kind.ts";
import type { CronJob, CronJobSpec } from "../../api/batch/cron-job/schema.ts";
import { jobKind } from "../../api/batch/job/kind.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { resourceQuotaKind } from "../../api/core/resource-quota/kind.ts";
import type { Client } from "../../client/client.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { startController } from "../../testing/controllers/start-controller.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { runCronJobController } from "./cron-job-controller.ts";
import { type CronJobSyncDeps, syncCronJob } from "./cron-job-sync.ts";

const namespace = "default";
const START = Date.UTC(2026, 2, 2, 10, 0, 30);

async function startCronJobController(t: Parameters<typeof startInMemoryCluster>[0], others: readonly string[] = []) {
  const clock = new FakeClock(START);
  const embeddedControllers = ["garbage-collector", "serviceaccount", ...others];
  const client = await startInMemoryCluster(t, { embeddedControllers }, clock);
  startController(t, runCronJobController, client, clock);
  await passTime(clock, 100);
  return { client, clock };
}

async function createCronJob(client: Client, spec: Partial<CronJobSpec>): Promise<void> {
  const containers = [{ name: "c", image: "task:1" }];
  const jobTemplate = { spec: { template: { spec: { restartPolicy: "Never" as const, containers } } } };
  await client.create(cronJobKind, {
    metadata: { name: "cj", namespace },
    spec: { schedule: "* * * * *", jobTemplate, ...spec },
  });
}

async function jobNames(client: Client): Promise<readonly string[]> {
  const { items } = await client.list(jobKind, { namespace });
  return items.map(({ metadata }) => metadata?.name ?? "").sort();
}

async function reasons(client: Client): Promise<readonly string[]> {
  const { items } = await client.list(eventKind, { namespace });
  return items
    .filter(({ involvedObject }) => involvedObject.kind === "CronJob")
    .map(({ reason = "" }) => reason)
    .sort();
}

const minute = Math.floor(START / 60_000);

t.test("a run starts within a second of its time, in the time zone of the cron job", async (t) => {
  const { client, clock } = await startCronJobController(t);
  await createCronJob(client, { schedule: "1 19 * * *", timeZone: "Asia/Tokyo" });
  await passTime(clock, 29_000);
  t.strictSame(await jobNames(client), []);
  await passTime(clock, 1500);
  t.strictSame(await jobNames(client), [`cj-${minute + 1}`]);
  const [job] = (await client.list(jobKind, { namespace })).items;
  const annotation = job?.metadata?.annotations?.["batch.kubernetes.io/cronjob-scheduled-timestamp"];
  t.equal(annotation, "2026-03-02T19:01:00+09:00");
  const { status } = await client.get(cronJobKind, { name: "cj", namespace });
  t.equal(status?.lastScheduleTime, "2026-03-02T10:01:00Z");
});

for (const [title, first, next] of [
  ["schedule", { schedule: "0 12 1 1 *" }, { schedule: "* * * * *" }],
  ["time zone", { schedule: "*/5 * * * *" }, { schedule: "* * * * *", timeZone: "Asia/Tokyo" }],
] as const) {
  t.test(`a run that only the new ${title} would have had before its change does not start`, async (t) => {
    const { client, clock } = await startCronJobController(t);
    await createCronJob(client, first);
    await passTime(clock, 3 * 60_000);
    t.strictSame(await jobNames(client), []);
    await client.patch(cronJobKind, { name: "cj", namespace }, "merge", { spec: next });
    await passTime(clock, 20_000);
    t.strictSame(await jobNames(client), []);
    await passTime(clock, 11_000);
    t.strictSame(await jobNames(client), [`cj-${minute + 4}`]);
    t.strictSame(await reasons(client), ["SuccessfulCreate"]);
  });
}

t.test("Replace deletes the job that runs", async (t) => {
  const { client, clock } = await startCronJobController(t);
  await createCronJob(client, { concurrencyPolicy: "Replace" });
  await passTime(clock, 31_000);
  t.strictSame(await jobNames(client), [`cj-${minute + 1}`]);
  await passTime(clock, 60_000);
  t.strictSame(await jobNames(client), [`cj-${minute + 2}`]);
  const { status } = await client.get(cronJobKind, { name: "cj", namespace });
  t.match(status?.active, [{ name: `cj-${minute + 2}` }]);
  t.strictSame(await reasons(client), ["SuccessfulCreate", "SuccessfulCreate", "SuccessfulDelete"]);
});

t.test("a run starts when the time of day was set forward", async (t) => {
  const { client, clock } = await startCronJobController(t);
  await createCronJob(client, { schedule: "0 12 * * *" });
  await passTime(clock, 31_000);
  t.strictSame(await jobNames(client), []);
  clock.set(Date.UTC(2026, 2, 2, 12, 5));
  await passTime(clock, 31_000);
  t.strictSame(await jobNames(client), [`cj-${Date.UTC(2026, 2, 2, 12) / 60_000}`]);
});

t.test("a job that exists already becomes active if it is the cron job's, and is left alone otherwise", async (t) => {
  const { client, clock } = await startCronJobController(t);
  const template = { spec: { restartPolicy: "Never" as const, containers: [{ name: "c", image: "other:1" }] } };
  await client.create(jobKind, { metadata: { name: `cj-${minute + 1}`, namespace }, spec: { template } });
  await createCronJob(client, {});
  await passTime(clock, 31_000);
  const foreign = await client.get(cronJobKind, { name: "cj", namespace });
  t.strictSame(foreign.status?.active ?? [], []);
  await passTime(clock, 60_000);
  const { status, ...rest } = await client.get(cronJobKind, { name: "cj", namespace });
  t.match(status?.active, [{ name: `cj-${minute + 2}` }]);
  // As if the controller had stopped before it wrote the status.
  await client.updateStatus(cronJobKind, { ...rest, status: { lastScheduleTime: "2026-03-02T10:01:00Z" } });
  await passTime(clock, 1000);
  const again = await client.get(cronJobKind, { name: "cj", namespace });
  t.match(again.status, { active: [{ name: `cj-${minute + 2}` }], lastScheduleTime: "2026-03-02T10:02:00Z" });
  t.strictSame(await jobNames(client), [`cj-${minute + 1}`, `cj-${minute + 2}`]);
});

t.test("a creation that is refused is reported and retried", async (t) => {
  const { client, clock } = await startCronJobController(t, ["resourcequota"]);
  await client.create(resourceQuotaKind, {
    metadata: { name: "q", namespace },
    spec: { hard: { "count/jobs.batch": "0" } },
  });
  await createCronJob(client, {});
  await passTime(clock, 31_000);
  t.ok((await reasons(client)).includes("FailedCreate"));
  await client.delete(resourceQuotaKind, { name: "q", namespace });
  await passTime(clock, 29_000);
  t.strictSame(await jobNames(client), [`cj-${minute + 1}`]);
});

t.test("a run whose deadline has passed is reported", async (t) => {
  const { client, clock } = await startCronJobController(t);
  await createCronJob(client, { schedule: "0 11 * * *", suspend: true, startingDeadlineSeconds: 10_000 });
  await passTime(clock, 2 * 3_600_000);
  const cronJob = await client.get(cronJobKind, { name: "cj", namespace });
  const spec = { ...cronJob.spec!, suspend: false, startingDeadlineSeconds: 600 };
  await client.update(cronJobKind, { ...cronJob, spec });
  await passTime(clock, 1000);
  t.strictSame(await jobNames(client), []);
});

t.test("a job that only the server's status lists is not reported as unexpected", async (t) => {
  const reference = { kind: "Job", name: "cj-1", namespace, uid: "job" };
  const spec = { schedule: "* * * * *", suspend: true, jobTemplate: { spec: { template: {} } } };
  const cached: CronJob = { metadata: { name: "cj", namespace, uid: "cj" }, spec, status: {} };
  const events: string[] = [];
  const sync = async (server: CronJob): Promise<readonly string[]> => {
    events.length = 0;
    const deps: Partial<CronJobSyncDeps> = {
      client: { get: async () => server } as never,
      recorder: { record: (_about: unknown, _type: string, reason: string) => void events.push(reason) } as never,
      signal: new AbortController().signal,
    };
    await syncCronJob(cached, [{ metadata: { name: "cj-1", namespace, uid: "job" } }], deps as CronJobSyncDeps);
    return events;
  };
  t.same(await sync({ ...cached, status: { active: [reference] } }), []);
  t.same(await sync(cached), ["UnexpectedJob"]);
});
