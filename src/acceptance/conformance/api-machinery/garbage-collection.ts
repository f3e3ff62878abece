/** What becomes of dependents, by the propagation policy of the deletion, and of what a namespace has. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import { waitReplicas, workloadOf } from "../apps/workloads.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";

/** Long enough for the garbage collector to delete what it would delete. */
const OBSERVATION_MS = 10_000;

const podsOf = (at: TestNamespace, name: string): Promise<readonly Json[]> =>
  at.api.list(`${at.path("pods")}?labelSelector=app%3D${name}`);

async function runController(at: TestNamespace, name: string, replicas: number) {
  const object = workloadOf("ReplicationController", name, replicas);
  const { metadata } = await at.create(object);
  await waitReplicas(at, object, replicas);
  return { path: at.pathOfObject(object), uid: metadata.uid as string };
}

async function deleteRs(at: TestNamespace): Promise<void> {
  const object = workloadOf("Deployment", "web", 2);
  await at.create(object);
  await waitReplicas(at, object, 2);
  await at.api.delete(at.pathOfObject(object), { propagationPolicy: "Background" });
  const sets = at.pathOf("apps/v1", "ReplicaSet");
  await until("the end of the ReplicaSet", async () => (await at.api.list(sets)).length === 0);
  await until("the end of the pods", async () => (await podsOf(at, "web")).length === 0);
}

async function orphanRs(at: TestNamespace): Promise<void> {
  const object = workloadOf("Deployment", "web", 2);
  await at.create(object);
  await waitReplicas(at, object, 2);
  const path = at.pathOfObject(object);
  await at.api.delete(path, { propagationPolicy: "Orphan" });
  await at.api.waitGone(path);
  await sleep(OBSERVATION_MS);
  const [set, ...others] = await at.api.list(at.pathOf("apps/v1", "ReplicaSet"));
  assert.deepEqual(others, []);
  assert.equal(set.metadata.ownerReferences, undefined);
  assert.equal(set.metadata.deletionTimestamp, undefined);
  assert.equal((await podsOf(at, "web")).length, 2);
}

async function deletePods(at: TestNamespace): Promise<void> {
  const { path } = await runController(at, "simple", 2);
  await at.api.delete(path, { propagationPolicy: "Background" });
  await until("the end of the pods", async () => (await podsOf(at, "simple")).length === 0);
}

async function orphanPods(at: TestNamespace): Promise<void> {
  const { path } = await runController(at, "simple", 10);
  await at.api.delete(path, { propagationPolicy: "Orphan" });
  await at.api.waitGone(path);
  await sleep(OBSERVATION_MS);
  const pods = await podsOf(at, "simple");
  assert.equal(pods.length, 10);
  for (const { metadata } of pods) assert.equal(metadata.ownerReferences, undefined);
}

async function keepOwner(at: TestNamespace): Promise<void> {
  const { path } = await runController(at, "simple", 10);
  using watch = await at.api.watch(at.path("replicationcontrollers"));
  using pods = await at.api.watch(`${at.path("pods")}?labelSelector=app%3Dsimple`);
  await at.api.delete(path, { propagationPolicy: "Foreground" });
  await watch.wait("DELETED", ({ metadata }) => metadata.name === "simple");
  await until("the deletion of all pods", () => pods.events.filter(({ type }) => type === "DELETED").length === 10);
  const owner = watch.events.find(({ type }) => type === "DELETED")?.object.metadata.resourceVersion;
  for (const { type, object } of pods.events) {
    if (type === "DELETED") assert.ok(Number(object.metadata.resourceVersion) < Number(owner), "pods go first");
  }
}

async function keepSharedDependents(at: TestNamespace): Promise<void> {
  const first = await runController(at, "first", 10);
  const second = await runController(at, "second", 0);
  const shared = (await podsOf(at, "first")).slice(0, 5);
  const reference = { apiVersion: "v1", kind: "ReplicationController", name: "second", uid: second.uid };
  for (const { metadata } of shared) {
    const ownerReferences = [...metadata.ownerReferences, reference];
    await at.api.patch(at.path(`pods/${metadata.name}`), { metadata: { ownerReferences } });
  }
  await at.api.delete(first.path, { propagationPolicy: "Foreground" });
  await at.api.waitGone(first.path);
  const left = await podsOf(at, "first");
  assert.deepEqual(
    left.map(({ metadata }) => metadata.name).sort(),
    shared.map(({ metadata }) => metadata.name).sort(),
  );
  for (const { metadata } of left) {
    assert.equal(metadata.deletionTimestamp, undefined);
    assert.deepEqual(
      metadata.ownerReferences.map(({ uid }: Json) => uid),
      [second.uid],
    );
  }
}

async function breakCircle(at: TestNamespace): Promise<void> {
  const names = ["pod1", "pod2", "pod3"];
  const uids: string[] = [];
  for (const name of names) uids.push((await at.create(podOf(name, PAUSE))).metadata.uid);
  for (const [index, name] of names.entries()) {
    const owner = (index + 2) % 3;
    const reference = { apiVersion: "v1", kind: "Pod", name: names[owner], uid: uids[owner], controller: true };
    const ownerReferences = [{ ...reference, blockOwnerDeletion: true }];
    await at.api.patch(at.path(`pods/${name}`), { metadata: { ownerReferences } });
  }
  await at.api.delete(at.path("pods/pod1"), { propagationPolicy: "Foreground" });
  for (const name of names) await at.api.waitGone(at.path(`pods/${name}`));
}

async function removePods(at: TestNamespace): Promise<void> {
  const name = `${at.name}-removed`;
  const path = `/api/v1/namespaces/${name}`;
  await at.api.post("/api/v1/namespaces", { metadata: { name } });
  await until("the default service account", async () => {
    return (await at.api.send(`GET ${path}/serviceaccounts/default`)).status === 200;
  });
  await at.api.post(`${path}/pods`, podOf("test-pod", PAUSE));
  await at.wait(`${path}/pods/test-pod`, "a running pod", ({ status }) => status.phase === "Running");
  await at.api.delete(path);
  await at.api.waitGone(path);
  await at.api.post("/api/v1/namespaces", { metadata: { name } });
  assert.deepEqual(await at.api.list(`${path}/pods`), []);
  await at.api.delete(path);
}

async function patchNamespace(at: TestNamespace): Promise<void> {
  const path = `/api/v1/namespaces/${at.name}`;
  await at.api.patch(path, { metadata: { labels: { testLabel: "testValue" } } }, "strategic");
  assert.equal((await at.api.get(path)).metadata.labels.testLabel, "testValue");
}

export const garbageCollection: Behaviours = {
  "Garbage collector should delete RS created by deployment when not orphaning": deleteRs,
  "Garbage collector should delete pods created by rc when not orphaning": deletePods,
  "Garbage collector should keep the rc around until all its pods are deleted if the deleteOptions says so": keepOwner,
  "Garbage collector should not be blocked by dependency circle": breakCircle,
  "Garbage collector should not delete dependents that have both valid owner and owner that's waiting for dependents to be deleted":
    keepSharedDependents,
  "Garbage collector should orphan RS created by deployment when deleteOptions.PropagationPolicy is Orphan": orphanRs,
  "Garbage collector should orphan pods created by rc if delete options say so": orphanPods,
  "Namespaces should ensure that all pods are removed when a namespace is deleted": removePods,
  "Namespaces should patch a Namespace": patchNamespace,
};
