/** Jobs that fail, are evicted, suspended and patched; revisions and rollbacks of DaemonSets. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { waitReplicas, workloadOf } from "./workloads.ts";

export function jobOf(name: string, script: string, spec: object = {}, pod: object = {}) {
  const { spec: podSpec } = podOf("", script, { spec: pod });
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels: { job: name } },
    spec: { template: { metadata: { labels: { job: name } }, spec: podSpec }, ...spec },
  };
}

function waitComplete(at: TestNamespace, job: Parameters<TestNamespace["get"]>[0], timeoutMs = 180_000): Promise<Json> {
  return at.wait(
    at.pathOfObject(job),
    "a complete job",
    ({ status }) => {
      assert.equal(conditionOf(status, "Failed"), undefined, JSON.stringify(status));
      return conditionOf(status, "Complete")?.status === "True";
    },
    timeoutMs,
  );
}

async function restartLocally(at: TestNamespace): Promise<void> {
  const job = jobOf(
    "sometimes",
    "if [ -e /data/tried ]; then exit 0; fi; echo > /data/tried; exit 1",
    { parallelism: 2, completions: 4 },
    { restartPolicy: "OnFailure", volumes: [{ name: "data", emptyDir: {} }] },
  );
  const container = job.spec.template.spec.containers[0];
  Object.assign(container as object, { volumeMounts: [{ name: "data", mountPath: "/data" }] });
  await at.create(job);
  const { status } = await waitComplete(at, job, 240_000);
  assert.equal(status.succeeded, 4);
  const pods = await at.api.list(`${at.path("pods")}?labelSelector=job%3Dsometimes`);
  assert.deepEqual(
    pods.map(({ status }) => status.containerStatuses[0].restartCount),
    [1, 1, 1, 1],
  );
}

/** Each index is evicted once, which would fail the job without the rule for disruptions. */
async function ignoreDisruptions(at: TestNamespace): Promise<void> {
  const directory = `/tmp/${at.name}`;
  const job = jobOf(
    "evicted",
    'if [ -e "/data/$JOB_COMPLETION_INDEX" ]; then exit 0; fi; echo > "/data/$JOB_COMPLETION_INDEX"; sleep 3600 & wait',
    {
      completionMode: "Indexed",
      completions: 2,
      parallelism: 2,
      backoffLimit: 0,
      podFailurePolicy: {
        rules: [{ action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }],
      },
    },
    { volumes: [{ name: "data", hostPath: { path: directory, type: "DirectoryOrCreate" } }] },
  );
  const container = job.spec.template.spec.containers[0];
  Object.assign(container as object, { volumeMounts: [{ name: "data", mountPath: "/data" }] });
  await at.create(job);
  const running = await until("two pods that run", async () => {
    const pods = await at.api.list(`${at.path("pods")}?labelSelector=job%3Devicted`);
    return pods.length === 2 && pods.every(({ status }) => status.phase === "Running") ? pods : undefined;
  });
  for (const { metadata } of running) {
    await until("the marker of the pod", async () => {
      return (await at.exec(metadata.name, "ls /data/$JOB_COMPLETION_INDEX || true")) !== "";
    });
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: metadata.name } };
    await at.api.post(at.path(`pods/${metadata.name}/eviction`), eviction);
  }
  const { status } = await waitComplete(at, job);
  assert.equal(status.succeeded, 2);
  assert.equal(status.failed ?? 0, 0);
}

async function succeedAll(at: TestNamespace): Promise<void> {
  const job = jobOf("policy", "true", {
    completionMode: "Indexed",
    completions: 2,
    parallelism: 2,
    successPolicy: { rules: [{ succeededIndexes: "0-1", succeededCount: 2 }] },
  });
  await at.create(job);
  const { status } = await waitComplete(at, job);
  const met = conditionOf(status, "SuccessCriteriaMet");
  assert.equal(met.status, "True");
  assert.equal(met.reason, "SuccessPolicy");
  assert.equal(conditionOf(status, "Complete").reason, "SuccessPolicy");
  assert.equal(status.completedIndexes, "0,1");
}

async function changeJobStatus(at: TestNamespace): Promise<void> {
  const job = jobOf("stated", PAUSE);
  await at.create(job);
  const path = `${at.pathOfObject(job)}/status`;
  await at.wait(path, "an active pod", ({ status }) => status.active === 1);
  const condition = (type: string) => ({ type, status: "True", reason: "E2E", message: `Set by ${type}` });
  const patched = await at.api.patch(path, {
    metadata: { annotations: { patchedstatus: "true" } },
    status: { conditions: [condition("StatusPatch")] },
  });
  assert.equal(patched.metadata.annotations.patchedstatus, "true");
  assert.partialDeepStrictEqual(conditionOf(patched.status, "StatusPatch"), condition("StatusPatch"));
  const updated = await at.api.update(path, ({ status }) => status.conditions.push(condition("StatusUpdate")));
  assert.partialDeepStrictEqual(conditionOf(updated.status, "StatusUpdate"), condition("StatusUpdate"));
  const found = await at.api.get(path);
  assert.equal(found.metadata.uid, updated.metadata.uid);
  assert.ok(conditionOf(found.status, "StatusUpdate"));
}

async function manageJob(at: TestNamespace): Promise<void> {
  const job = jobOf("managed", "true", { suspend: true });
  const path = at.pathOfObject(job);
  await at.create(job);
  using watch = await at.api.watch(`${at.pathOf("batch/v1", "Job")}?labelSelector=job%3Dmanaged`);
  await at.api.patch(path, { metadata: { labels: { of: at.name } } });
  await watch.wait("MODIFIED", ({ metadata }) => metadata.labels.of === at.name);
  await at.wait(path, "a suspended job", ({ status }) => conditionOf(status, "Suspended")?.status === "True");
  await at.api.update(path, ({ metadata, spec }) => {
    metadata.annotations = { ...metadata.annotations, updated: "true" };
    spec.suspend = false;
  });
  await watch.wait("MODIFIED", ({ metadata }) => metadata.annotations?.updated === "true");
  await waitComplete(at, job);
  const selector = `?labelSelector=of%3D${at.name}`;
  assert.equal((await at.api.list(`/apis/batch/v1/jobs${selector}`)).length, 1);
  await at.api.delete(`${at.pathOf("batch/v1", "Job")}${selector}&propagationPolicy=Background`);
  await watch.wait("DELETED");
  assert.equal((await at.api.list(`/apis/batch/v1/jobs${selector}`)).length, 0);
}

async function manageRevisions(at: TestNamespace): Promise<void> {
  const object = workloadOf("DaemonSet", "revised");
  await at.create(object);
  await waitReplicas(at, object, 1);
  const collection = at.pathOf("apps/v1", "ControllerRevision");
  const selector = "?labelSelector=app%3Drevised";
  const list = () => at.api.list(collection + selector);
  const count = (expected: number): Promise<readonly Json[]> =>
    until(`${expected} revisions`, async () => {
      const found = await list();
      return found.length === expected ? found : undefined;
    });
  const [initial] = await count(1);
  using watch = await at.api.watch(collection + selector);
  const path = (revision: Json): string => `${collection}/${revision.metadata.name}`;
  const patched = await at.api.patch(path(initial), { metadata: { labels: { patched: "true" } } });
  assert.equal(patched.metadata.labels.patched, "true");
  const { uid } = await at.get(object).then(({ metadata }) => metadata);
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "revised", uid, controller: true };
  const made = await at.api.post(collection, {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: { name: "made", labels: { app: "revised" }, ownerReferences: [owner] },
    data: initial.data,
    revision: initial.revision + 1,
  });
  await watch.wait("ADDED", ({ metadata }) => metadata.name === "made");
  assert.equal(watch.events.filter(({ type }) => type === "ADDED").length, 2);
  // The controller may merge the two, which have the same data, by deleting the older one first.
  const { status } = await at.api.send(`DELETE ${path(initial)}`);
  assert.ok(status === 200 || status === 404, `status ${status}`);
  await until("the end of the first revision", async () => {
    return !(await list()).some(({ metadata }) => metadata.uid === initial.metadata.uid);
  });
  await count(1);
  const updated = await at.api.update(path(made), ({ metadata }) => {
    metadata.labels.updated = "true";
  });
  assert.equal(updated.metadata.labels.updated, "true");
  const patch = { spec: { template: { spec: { terminationGracePeriodSeconds: 1 } } } };
  await at.api.patch(at.pathOfObject(object), patch, "strategic");
  await count(2);
  await at.api.delete(`${collection}?labelSelector=updated%3Dtrue`);
  const [last] = await count(1);
  assert.equal(last.revision, 3);
}

async function rollBack(at: TestNamespace): Promise<void> {
  const object = workloadOf("DaemonSet", "rolled");
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitReplicas(at, object, 1);
  const podsNow = async (): Promise<readonly Json[]> => {
    const found = await at.api.list(`${at.path("pods")}?labelSelector=app%3Drolled`);
    return found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  // The updated pod cannot run: its image does not exist.
  const bad = "svc.local/examples/absent:1";
  const before = (await podsNow())[0];
  const image = before.spec.containers[0].image;
  const setImage = (image: string): Promise<Json> =>
    at.api.patch(path, { spec: { template: { spec: { containers: [{ name: "c", image }] } } } }, "strategic");
  await at.api.patch(path, { spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } } });
  await setImage(bad);
  await until("a pod with the new image", async () => {
    return (await podsNow()).some(({ spec }) => spec.containers[0].image === bad);
  });
  assert.ok((await podsNow()).some(({ metadata }) => metadata.uid === before.metadata.uid));
  await at.run("rollout undo daemonset/rolled");
  const found = await until("the pod of the first revision alone", async () => {
    const pods = await podsNow();
    return pods.length === 1 && pods[0].spec.containers[0].image === image ? pods[0] : undefined;
  });
  assert.equal(found.metadata.uid, before.metadata.uid, "the pod that ran was not replaced");
  assert.equal(found.status.containerStatuses[0].restartCount, 0);
}

export const jobs: Behaviours = {
  "Job should allow to use a pod failure policy to ignore failure matching on DisruptionTarget condition":
    ignoreDisruptions,
  "Job should apply changes to a job status": changeJobStatus,
  "Job should manage the lifecycle of a job": manageJob,
  "Job should run a job to completion when tasks sometimes fail and are locally restarted": restartLocally,
  "Job with successPolicy should succeeded when all indexes succeeded": succeedAll,
  "ControllerRevision should manage the lifecycle of a ControllerRevision": manageRevisions,
  "Daemon set should rollback without unnecessary restarts": rollBack,
};
