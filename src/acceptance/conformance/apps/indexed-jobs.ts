/** Jobs with policies of failure and success, by index, and CronJobs. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, PAUSE, type TestNamespace } from "../harness/behaviour.ts";
import { jobOf } from "./jobs.ts";

const podsOf = async (at: TestNamespace, job: string): Promise<readonly Json[]> =>
  await at.api.list(`${at.path("pods")}?labelSelector=job%3D${job}`);

const isActive = ({ metadata, status }: Json): boolean =>
  metadata.deletionTimestamp === undefined && status.phase !== "Succeeded" && status.phase !== "Failed";

function waitCondition(at: TestNamespace, job: ReturnType<typeof jobOf>, type: "Complete" | "Failed"): Promise<Json> {
  return at.wait(
    at.pathOfObject(job),
    `condition ${type}`,
    ({ status }) => conditionOf(status, type)?.status === "True",
    240_000,
  );
}

const indexed = { completionMode: "Indexed", parallelism: 2, completions: 4 };
const INDEX = "$JOB_COMPLETION_INDEX";

async function adoptAndRelease(at: TestNamespace): Promise<void> {
  const job = jobOf("adopting", PAUSE, { parallelism: 2, completions: 2 });
  const { metadata } = await at.create(job);
  const pods = await until("two active pods", async () => {
    const found = (await podsOf(at, "adopting")).filter(isActive);
    return found.length === 2 ? found : undefined;
  });
  const [first, second] = pods.map((pod) => at.path(`pods/${pod.metadata.name}`)) as [string, string];
  const owner = (pod: Json): string | undefined => pod.metadata.ownerReferences?.[0]?.uid;
  await at.api.update(first, (pod) => {
    pod.metadata.ownerReferences = null;
  });
  await at.wait(first, "the owner again", (pod) => owner(pod) === metadata.uid);
  await at.api.update(second, (pod) => {
    pod.metadata.labels = null;
  });
  await at.wait(second, "no owner", (pod) => owner(pod) === undefined);
}

async function failEarly(at: TestNamespace): Promise<void> {
  const job = jobOf("early", `[ ${INDEX} = 1 ] && exit 42; sleep 3600 & wait`, {
    ...indexed,
    completions: 2,
    backoffLimit: 6,
    podFailurePolicy: {
      rules: [{ action: "FailJob", onExitCodes: { containerName: "c", operator: "In", values: [42] } }],
    },
  });
  await at.create(job);
  const { status } = await waitCondition(at, job, "Failed");
  assert.equal(conditionOf(status, "Failed").reason, "PodFailurePolicy");
  assert.match(conditionOf(status, "FailureTarget").message, /exit code 42 matching FailJob rule at index 0/);
}

async function indexPods(at: TestNamespace): Promise<void> {
  const job = jobOf("indexed", `echo index ${INDEX} of $HOSTNAME`, indexed);
  await at.create(job);
  const { status } = await waitCondition(at, job, "Complete");
  assert.equal(status.completedIndexes, "0-3");
  const pods = await podsOf(at, "indexed");
  const indexes = pods.map(({ metadata }) => metadata.annotations["batch.kubernetes.io/job-completion-index"]);
  assert.deepEqual(indexes.sort(), ["0", "1", "2", "3"]);
  for (const { metadata, spec } of pods) {
    const index = metadata.annotations["batch.kubernetes.io/job-completion-index"];
    assert.equal(spec.hostname, `indexed-${index}`);
    assert.equal(await at.log(metadata.name), `index ${index} of indexed-${index}\n`);
    assert.ok(metadata.name.startsWith(`indexed-${index}-`));
  }
}

async function deleteJob(at: TestNamespace): Promise<void> {
  const job = jobOf("deleted", PAUSE, { parallelism: 2, completions: 4 });
  await at.create(job);
  await until("two active pods", async () => (await podsOf(at, "deleted")).filter(isActive).length === 2);
  await at.api.delete(at.pathOfObject(job), { propagationPolicy: "Foreground" });
  await at.api.waitGone(at.pathOfObject(job));
  assert.deepEqual(await podsOf(at, "deleted"), []);
}

async function limitPerIndex(at: TestNamespace): Promise<void> {
  const job = jobOf("limited", `[ $((${INDEX} % 2)) = 0 ]`, {
    ...indexed,
    backoffLimit: null,
    backoffLimitPerIndex: 1,
  });
  await at.create(job);
  const { status } = await waitCondition(at, job, "Failed");
  assert.equal(status.failedIndexes, "1,3");
  assert.equal(status.completedIndexes, "0,2");
  assert.equal(status.failed, 4, "each failing index is tried twice");
  assert.equal(status.succeeded, 2);
}

async function failIndex(at: TestNamespace): Promise<void> {
  const job = jobOf("failing", `[ ${INDEX} = 0 ] && exit 42; exit 0`, {
    ...indexed,
    completions: 2,
    backoffLimit: null,
    backoffLimitPerIndex: 1,
    podFailurePolicy: {
      rules: [{ action: "FailIndex", onExitCodes: { containerName: "c", operator: "In", values: [42] } }],
    },
  });
  await at.create(job);
  const { status } = await waitCondition(at, job, "Failed");
  assert.equal(status.failedIndexes, "0");
  assert.equal(status.completedIndexes, "1");
  assert.equal(status.failed, 1, "without a second try");
}

async function limitFailedIndexes(at: TestNamespace): Promise<void> {
  const job = jobOf("stopped", "exit 1", {
    ...indexed,
    backoffLimit: null,
    parallelism: 1,
    backoffLimitPerIndex: 0,
    maxFailedIndexes: 1,
  });
  await at.create(job);
  const { status } = await waitCondition(at, job, "Failed");
  assert.equal(conditionOf(status, "Failed").reason, "MaxFailedIndexesExceeded");
  assert.equal(status.failedIndexes, "0,1");
  assert.equal(status.failed, 2);
}

async function succeedEarly(at: TestNamespace, rule: object): Promise<void> {
  const job = jobOf("policy", `[ ${INDEX} = 0 ] && exit 0; sleep 3600 & wait`, {
    ...indexed,
    parallelism: 5,
    completions: 5,
    successPolicy: { rules: [rule] },
  });
  await at.create(job);
  const { status } = await waitCondition(at, job, "Complete");
  for (const type of ["SuccessCriteriaMet", "Complete"]) {
    assert.equal(conditionOf(status, type).reason, "SuccessPolicy");
  }
  assert.equal(status.completedIndexes, "0");
  await until("the end of the other pods", async () => (await podsOf(at, "policy")).filter(isActive).length === 0);
}

function cronJobOf(name: string, concurrencyPolicy: string, script: string, more: object = {}) {
  const { spec } = jobOf(name, script);
  return {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name },
    spec: { schedule: "*/1 * * * *", concurrencyPolicy, jobTemplate: { spec }, ...more },
  };
}

const CRON_MS_MAX = 150_000;
const SLOW = "sleep 3600 & wait";

function waitActive(at: TestNamespace, cron: ReturnType<typeof cronJobOf>, count: number): Promise<Json> {
  return at.wait(
    at.pathOfObject(cron),
    `${count} active jobs`,
    ({ status }) => status.active?.length === count,
    CRON_MS_MAX,
  );
}

async function scheduleConcurrently(at: TestNamespace): Promise<void> {
  const cron = cronJobOf("concurrent", "Allow", SLOW);
  await at.create(cron);
  await waitActive(at, cron, 2);
  await until("two active jobs", async () => {
    const jobs = await at.api.list(at.pathOf("batch/v1", "Job"));
    return jobs.filter(({ status }) => status.active > 0).length >= 2;
  });
}

async function suspend(at: TestNamespace): Promise<void> {
  await at.create(cronJobOf("suspended", "Allow", SLOW, { suspend: true }));
  await sleep(90_000);
  assert.deepEqual(await at.api.list(at.pathOf("batch/v1", "Job")), []);
}

async function forbid(at: TestNamespace): Promise<void> {
  const cron = cronJobOf("forbidden", "Forbid", SLOW);
  await at.create(cron);
  const { status } = await waitActive(at, cron, 1);
  await sleep(75_000);
  assert.deepEqual(
    (await at.get(cron)).status.active.map(({ uid }: Json) => uid),
    [status.active[0].uid],
  );
  assert.equal((await at.api.list(at.pathOf("batch/v1", "Job"))).length, 1);
}

async function replace(at: TestNamespace): Promise<void> {
  const cron = cronJobOf("replaced", "Replace", SLOW);
  await at.create(cron);
  const { status } = await waitActive(at, cron, 1);
  const first = status.active[0].name;
  const next = await at.wait(
    at.pathOfObject(cron),
    "another job",
    (found) => {
      const [active] = found.status.active ?? [];
      return active !== undefined && active.name !== first;
    },
    CRON_MS_MAX,
  );
  assert.equal(next.status.active.length, 1);
  await at.api.waitGone(at.pathOf("batch/v1", "Job", first));
}

export const indexedJobs: Behaviours = {
  "Job should adopt matching orphans and release non-matching pods": adoptAndRelease,
  "Job should allow to use the pod failure policy on exit code to fail the job early": failEarly,
  "Job should create pods for an Indexed job with completion indexes and specified hostname": indexPods,
  "Job should delete a job": deleteJob,
  "Job should execute all indexes despite some failing when using backoffLimitPerIndex": limitPerIndex,
  "Job should mark indexes as failed when the FailIndex action is matched in podFailurePolicy": failIndex,
  "Job should terminate job execution when the number of failed indexes exceeds maxFailedIndexes": limitFailedIndexes,
  "Job with successPolicy succeededCount rule should succeeded even when some indexes remain pending": (at) =>
    succeedEarly(at, { succeededCount: 1 }),
  "Job with successPolicy succeededIndexes rule should succeeded even when some indexes remain pending": (at) =>
    succeedEarly(at, { succeededIndexes: "0" }),
};

/** They wait for full minutes. */
export const cronJobs: Behaviours = {
  "CronJob should schedule multiple jobs concurrently": scheduleConcurrently,
  "CronJob should not schedule jobs when suspended": suspend,
  "CronJob should not schedule new jobs when ForbidConcurrent": forbid,
  "CronJob should replace jobs when ReplaceConcurrent": replace,
};
