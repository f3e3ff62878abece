/** StatefulSets: order, bursts, partitions, roll backs, and pods that fail. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, isReady, PAUSE, podOf, type TestNamespace, templateOf } from "../harness/behaviour.ts";
import { waitReplicas, workloadOf } from "./workloads.ts";

/** A pod is ready while /tmp/ready exists, which `setReady` changes. */
const readinessProbe = { exec: { command: ["cat", "/tmp/ready"] }, periodSeconds: 1 };
const START = `echo > /tmp/ready; ${PAUSE}`;

function setOf(name: string, replicas: number, more: object = {}) {
  const template = templateOf({ app: name }, START, { container: { readinessProbe } });
  return workloadOf("StatefulSet", name, replicas, { template, ...more });
}

const podsOf = async (at: TestNamespace, name: string): Promise<readonly Json[]> => {
  const pods = await at.api.list(`${at.path("pods")}?labelSelector=app%3D${name}`);
  return pods.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
};

async function setReady(at: TestNamespace, pod: string, ready: boolean): Promise<void> {
  await at.exec(pod, ready ? "echo > /tmp/ready" : "busybox rm -f /tmp/ready");
  await at.waitForPod(pod, ready ? "a ready pod" : "an unready pod", (found) => isReady(found) === ready);
}

const scale = (at: TestNamespace, object: ReturnType<typeof setOf>, replicas: number): Promise<Json> =>
  at.api.patch(`${at.pathOfObject(object)}/scale`, { spec: { replicas } });

const namesOf = (pods: readonly Json[]): readonly string[] => pods.map(({ metadata }) => metadata.name);

async function scaleInOrder(at: TestNamespace): Promise<void> {
  const object = setOf("ss", 1);
  using watch = await at.api.watch(`${at.path("pods")}?labelSelector=app%3Dss`);
  await at.create(object);
  await waitReplicas(at, object, 1);
  await setReady(at, "ss-0", false);
  await scale(at, object, 3);
  await sleep(5000);
  assert.deepEqual(namesOf(await podsOf(at, "ss")), ["ss-0"], "scaling up halts");
  await setReady(at, "ss-0", true);
  await waitReplicas(at, object, 3);
  const added = watch.events.filter(({ type }) => type === "ADDED").map(({ object }) => object.metadata.name);
  assert.deepEqual(added, ["ss-0", "ss-1", "ss-2"]);
  for (const name of ["ss-0", "ss-1", "ss-2"]) await setReady(at, name, false);
  await scale(at, object, 0);
  await sleep(5000);
  assert.deepEqual(namesOf(await podsOf(at, "ss")), ["ss-0", "ss-1", "ss-2"], "scaling down halts");
  for (const name of ["ss-0", "ss-1"]) await at.exec(name, "echo > /tmp/ready");
  await until("the end of all pods", async () => (await podsOf(at, "ss")).length === 0);
  const deleted = watch.events.filter(({ type }) => type === "DELETED").map(({ object }) => object.metadata.name);
  assert.deepEqual(deleted, ["ss-2", "ss-1", "ss-0"]);
}

async function burst(at: TestNamespace): Promise<void> {
  const object = setOf("ss", 1, { podManagementPolicy: "Parallel" });
  await at.create(object);
  await waitReplicas(at, object, 1);
  await setReady(at, "ss-0", false);
  await scale(at, object, 3);
  await until("three pods", async () => (await podsOf(at, "ss")).length === 3);
  await setReady(at, "ss-0", true);
  await waitReplicas(at, object, 3);
  await setReady(at, "ss-0", false);
  await scale(at, object, 0);
  await until("the end of all pods", async () => (await podsOf(at, "ss")).length === 0);
}

/** A pod that the node rejects, since another one has its host port, is created again. */
async function recreateEvicted(at: TestNamespace): Promise<void> {
  const { metadata } = await at.node();
  const ports = [{ containerPort: 21017, hostPort: 21017 }];
  const spec = { nodeName: metadata.name };
  await at.runPod(podOf("test-pod", PAUSE, { container: { ports }, spec }));
  const template = templateOf({ app: "ss" }, PAUSE, { container: { ports }, spec });
  const object = workloadOf("StatefulSet", "ss", 1, { template });
  using watch = await at.api.watch(`${at.path("pods")}?labelSelector=app%3Dss`);
  await at.create(object);
  const failed = await watch.wait("MODIFIED", ({ status }) => status.phase === "Failed");
  await watch.wait("DELETED", ({ metadata }) => metadata.uid === failed.metadata.uid);
  await at.api.delete(at.path("pods/test-pod"));
  await waitReplicas(at, object, 1);
  const [pod] = await podsOf(at, "ss");
  assert.equal(pod.metadata.name, "ss-0");
  assert.notEqual(pod.metadata.uid, failed.metadata.uid);
}

const change = (at: TestNamespace, object: ReturnType<typeof setOf>, value: string): Promise<Json> =>
  at.api.patch(
    at.pathOfObject(object),
    { spec: { template: { spec: { containers: [{ name: "c", env: [{ name: "REVISION", value }] }] } } } },
    "strategic",
  );

const revisionsOf = async (at: TestNamespace): Promise<readonly string[]> =>
  (await podsOf(at, "ss")).map(({ metadata }) => metadata.labels["controller-revision-hash"]);

const statusOf = async (at: TestNamespace, object: ReturnType<typeof setOf>): Promise<Json> =>
  (await at.get(object)).status;

async function updateInPhases(at: TestNamespace): Promise<void> {
  const partition = (value: number) => ({
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: value } },
  });
  const object = setOf("ss", 3, partition(3));
  await at.create(object);
  await waitReplicas(at, object, 3);
  const { currentRevision: old } = await statusOf(at, object);
  await change(at, object, "2");
  const { updateRevision: next } = (
    await at.wait(at.pathOfObject(object), "an update revision", ({ status }) => status.updateRevision !== old)
  ).status;
  const are = async (revisions: readonly string[]): Promise<void> => {
    await until(`the revisions ${revisions}`, async () => (await revisionsOf(at)).join() === revisions.join());
    await waitReplicas(at, object, 3);
  };
  await sleep(3000);
  await are([old, old, old]);
  await at.api.patch(at.pathOfObject(object), { spec: partition(2) });
  await are([old, old, next]);
  // Pods below the partition are restored at the old revision, and those above it at the new one.
  for (const name of ["ss-0", "ss-2"]) {
    const { metadata } = await at.pod(name);
    await at.api.delete(at.path(`pods/${name}`));
    await until("the pod again", async () => {
      const { status, json } = await at.api.send(`GET ${at.path(`pods/${name}`)}`);
      return status === 200 && json.metadata.uid !== metadata.uid;
    });
  }
  await are([old, old, next]);
  await at.api.patch(at.pathOfObject(object), { spec: partition(1) });
  await are([old, next, next]);
  await at.api.patch(at.pathOfObject(object), { spec: partition(0) });
  await are([next, next, next]);
  await at.wait(at.pathOfObject(object), "the end of the update", ({ status }) => status.currentRevision === next);
}

async function rollBack(at: TestNamespace): Promise<void> {
  const object = setOf("ss", 3);
  await at.create(object);
  await waitReplicas(at, object, 3);
  const { currentRevision, updateRevision } = await statusOf(at, object);
  assert.equal(currentRevision, updateRevision);
  using watch = await at.api.watch(`${at.path("pods")}?labelSelector=app%3Dss`);
  const rollTo = async (value: string): Promise<string> => {
    const before = (await statusOf(at, object)).updateRevision;
    await change(at, object, value);
    const { status } = await at.wait(
      at.pathOfObject(object),
      "the end of the rollout",
      ({ status }) => {
        return (
          status.updateRevision !== before &&
          status.currentRevision === status.updateRevision &&
          status.readyReplicas === 3
        );
      },
      240_000,
    );
    assert.deepEqual(new Set(await revisionsOf(at)), new Set([status.updateRevision]));
    return status.updateRevision;
  };
  const first = await rollTo("2");
  const deleted = watch.events.filter(({ type }) => type === "DELETED").map(({ object }) => object.metadata.name);
  assert.deepEqual(deleted, ["ss-2", "ss-1", "ss-0"], "one at a time, from the last");
  await rollTo("3");
  assert.equal(await rollTo("2"), first, "a template that was used before has the revision of then");
}

export const statefulSets: Behaviours = {
  "StatefulSet Basic StatefulSet functionality Burst scaling should run to completion even with unhealthy pods": burst,
  "StatefulSet Basic StatefulSet functionality Scaling should happen in predictable order and halt if any stateful pod is unhealthy":
    scaleInOrder,
  "StatefulSet Basic StatefulSet functionality Should recreate evicted statefulset": recreateEvicted,
  "StatefulSet Basic StatefulSet functionality should perform canary updates and phased rolling updates of template modifications":
    updateInPhases,
  "StatefulSet Basic StatefulSet functionality should perform rolling updates and roll backs of template modifications":
    rollBack,
};
