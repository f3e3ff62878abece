/** Rollouts of Deployments and DaemonSets, ReplicationControllers, and PodDisruptionBudgets. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import { exampleImage } from "../../cluster/example-image.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { testScale, testStatus, waitReplicas, workloadOf } from "./workloads.ts";

const podsOf = (at: TestNamespace, name: string): Promise<readonly Json[]> =>
  at.api.list(`${at.path("pods")}?labelSelector=app%3D${name}`);
const REVISION = "deployment.kubernetes.io/revision";

const setsOf = (at: TestNamespace, name: string): Promise<readonly Json[]> =>
  at.api.list(`${at.pathOf("apps/v1", "ReplicaSet")}?labelSelector=app%3D${name}`);
const activePods = async (at: TestNamespace, name: string): Promise<readonly Json[]> =>
  (await podsOf(at, name)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);

/** Changes the template by a variable of the container, or by its image. */
const change = (at: TestNamespace, path: string, value: string, image = exampleImage): Promise<Json> =>
  at.api.patch(
    path,
    { spec: { template: { spec: { containers: [{ name: "c", image, env: [{ name: "REVISION", value }] }] } } } },
    "strategic",
  );

const absent = "svc.local/examples/absent:1";

function waitRolledOut(at: TestNamespace, path: string, replicas: number): Promise<Json> {
  return at.wait(
    path,
    `${replicas} updated pods alone`,
    ({ metadata, status }) => {
      return (
        status.observedGeneration >= metadata.generation &&
        status.updatedReplicas === replicas &&
        status.replicas === replicas &&
        status.availableReplicas === replicas
      );
    },
    240_000,
  );
}

/** The first replica set is adopted, and has a revision that no double represents. */
async function rollUpdate(at: TestNamespace): Promise<void> {
  const object = workloadOf("Deployment", "rolled", 2);
  const path = at.pathOfObject(object);
  const adopted = workloadOf("ReplicaSet", "rolled", 2);
  await at.create({ ...adopted, metadata: { ...adopted.metadata, annotations: { [REVISION]: "9007199254740993" } } });
  await at.create(object);
  await waitRolledOut(at, path, 2);
  const before = await podsOf(at, "rolled");
  await change(at, path, "2");
  await waitRolledOut(at, path, 2);
  await until("the end of the old pods", async () => {
    const names = (await podsOf(at, "rolled")).map(({ metadata }) => metadata.name);
    return before.every(({ metadata }) => !names.includes(metadata.name));
  });
  const sets = await setsOf(at, "rolled");
  const sizes = sets.map(({ metadata, spec }) => [metadata.annotations[REVISION], spec.replicas]).sort();
  assert.deepEqual(sizes, [
    ["9007199254740993", 0],
    ["9007199254740994", 2],
  ]);
}

/** No pod of the new template exists while one of the old runs. */
async function recreate(at: TestNamespace): Promise<void> {
  const object = workloadOf("Deployment", "recreated", 2, { strategy: { type: "Recreate" } });
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitRolledOut(at, path, 2);
  const old = (await podsOf(at, "recreated")).map(({ metadata }) => metadata.uid);
  using watch = await at.api.watch(`${at.path("pods")}?labelSelector=app%3Drecreated`);
  await change(at, path, "2");
  await waitRolledOut(at, path, 2);
  const ended = new Set<string>();
  for (const { type, object } of watch.events) {
    const { uid } = object.metadata;
    if (type === "DELETED" || ["Succeeded", "Failed"].includes(object.status.phase)) ended.add(uid);
    if (type === "ADDED" && !old.includes(uid)) {
      assert.ok(
        old.every((each) => ended.has(each)),
        "a new pod was created while an old one ran",
      );
    }
  }
}

async function limitHistory(at: TestNamespace): Promise<void> {
  const object = workloadOf("Deployment", "forgetful", 1, { revisionHistoryLimit: 0 });
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitRolledOut(at, path, 1);
  await change(at, path, "2");
  await waitRolledOut(at, path, 1);
  await until("one ReplicaSet", async () => (await setsOf(at, "forgetful")).length === 1);
}

async function rollOver(at: TestNamespace): Promise<void> {
  const strategy = { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } };
  const object = workloadOf("Deployment", "over", 1, { strategy });
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitRolledOut(at, path, 1);
  // The first change cannot be rolled out; the second replaces it before its end.
  await change(at, path, "2", absent);
  await until("a ReplicaSet of the first change", async () => (await setsOf(at, "over")).length === 2);
  await change(at, path, "3");
  await waitRolledOut(at, path, 1);
  const replicas = (await setsOf(at, "over")).map(({ spec }) => spec.replicas);
  assert.deepEqual(replicas.sort(), [0, 0, 1]);
}

async function scaleInProportion(at: TestNamespace): Promise<void> {
  const strategy = { rollingUpdate: { maxUnavailable: 2, maxSurge: 3 } };
  const object = workloadOf("Deployment", "proportional", 10, { strategy });
  const path = at.pathOfObject(object);
  await at.create(object);
  await waitRolledOut(at, path, 10);
  await change(at, path, "2", absent);
  const replicasOf = async (image: string): Promise<number> => {
    const sets = await setsOf(at, "proportional");
    return sets.find(({ spec }) => spec.template.spec.containers[0].image === image)?.spec.replicas;
  };
  const are = (old: number, next: number): Promise<boolean> =>
    until(`${old} old and ${next} new replicas`, async () => {
      return (await replicasOf(exampleImage)) === old && (await replicasOf(absent)) === next;
    });
  await are(8, 5);
  await at.api.patch(path, { spec: { replicas: 30 } });
  // 33 pods at most: 20 more, shared by 8 to 5.
  await are(20, 13);
}

async function runDaemon(at: TestNamespace): Promise<void> {
  const object = workloadOf("DaemonSet", "simple");
  await at.create(object);
  await waitReplicas(at, object, 1);
  const [pod] = await podsOf(at, "simple");
  await at.api.delete(at.path(`pods/${pod.metadata.name}`));
  await until("another pod", async () => {
    const [next] = await activePods(at, "simple");
    return next !== undefined && next.metadata.uid !== pod.metadata.uid;
  });
  await waitReplicas(at, object, 1);
  await at.api.delete(at.pathOfObject(object));
  await until("the end of the pods", async () => (await podsOf(at, "simple")).length === 0);
}

/** The set runs on the nodes with the label. */
async function selectNodes(at: TestNamespace): Promise<void> {
  const { metadata } = await at.node();
  const node = `/api/v1/nodes/${metadata.name}`;
  const key = `color.${at.name}.example.com/color`;
  const color = (value: string | null): Promise<Json> => at.api.patch(node, { metadata: { labels: { [key]: value } } });
  const object = workloadOf("DaemonSet", "complex");
  Object.assign(object.spec.template.spec, { nodeSelector: { [key]: "blue" } });
  await at.create(object);
  try {
    await at.wait(at.pathOfObject(object), "an observed generation", ({ status }) => status.observedGeneration === 1);
    assert.deepEqual(await podsOf(at, "complex"), []);
    await color("blue");
    await waitReplicas(at, object, 1);
    await color("green");
    await until("the end of the pods", async () => (await podsOf(at, "complex")).length === 0);
    const template = { spec: { nodeSelector: { [key]: "green" } } };
    await at.api.patch(at.pathOfObject(object), { spec: { updateStrategy: { type: "RollingUpdate" }, template } });
    await waitReplicas(at, object, 1);
  } finally {
    await color(null);
  }
}

async function retryFailed(at: TestNamespace): Promise<void> {
  const object = workloadOf("DaemonSet", "failing");
  await at.create(object);
  await waitReplicas(at, object, 1);
  const [pod] = await podsOf(at, "failing");
  await at.api.patch(at.path(`pods/${pod.metadata.name}/status`), { status: { phase: "Failed" } });
  await until("another pod", async () => {
    const [next] = await activePods(at, "failing");
    return next !== undefined && next.metadata.uid !== pod.metadata.uid;
  });
  await at.api.waitGone(at.path(`pods/${pod.metadata.name}`));
  await waitReplicas(at, object, 1);
}

async function updateDaemon(at: TestNamespace): Promise<void> {
  const object = workloadOf("DaemonSet", "updated");
  await at.create(object);
  await waitReplicas(at, object, 1);
  const hashes = async (): Promise<readonly string[]> =>
    (await activePods(at, "updated")).map(({ metadata }) => metadata.labels["controller-revision-hash"]);
  const [first] = await hashes();
  await change(at, at.pathOfObject(object), "2");
  await until("the updated pod alone", async () => {
    const found = await hashes();
    return found.length === 1 && found[0] !== first;
  });
  await waitReplicas(at, object, 1);
  const revisions = await at.api.list(`${at.pathOf("apps/v1", "ControllerRevision")}?labelSelector=app%3Dupdated`);
  assert.deepEqual(revisions.map(({ revision }) => revision).sort(), [1, 2]);
}

const ownerOf = (pod: Json): string | undefined => pod.metadata.ownerReferences?.[0]?.uid;

async function adopt(at: TestNamespace): Promise<void> {
  await at.create(podOf("adopted", PAUSE, { labels: { app: "adopter" }, spec: { restartPolicy: "Always" } }));
  const { metadata } = await at.create(workloadOf("ReplicationController", "adopter"));
  await at.waitForPod("adopted", "an owner", (pod) => ownerOf(pod) === metadata.uid);
}

async function release(at: TestNamespace): Promise<void> {
  const object = workloadOf("ReplicationController", "releasing");
  await at.create(object);
  await waitReplicas(at, object, 1);
  const [{ metadata }] = (await podsOf(at, "releasing")) as [Json];
  await at.api.patch(at.path(`pods/${metadata.name}`), { metadata: { labels: { app: "released" } } });
  await at.waitForPod(metadata.name, "no owner", (pod) => ownerOf(pod) === undefined);
}

async function surfaceQuota(at: TestNamespace): Promise<void> {
  const quota = {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: "limited" },
    spec: { hard: { pods: "2" } },
  };
  await at.create(quota);
  await at.wait(at.pathOfObject(quota), "its status", ({ status }) => status.hard?.pods === "2");
  const object = workloadOf("ReplicationController", "limited", 3);
  const path = at.pathOfObject(object);
  await at.create(object);
  const failure = ({ status }: Json): Json => conditionOf(status, "ReplicaFailure");
  const found = await at.wait(path, "a failure", failure);
  assert.match(failure(found).message, /exceeded quota: limited/);
  await at.api.patch(`${path}/scale`, { spec: { replicas: 2 } });
  await at.wait(path, "no failure", (found) => failure(found) === undefined);
}

function budgetOf(name: string, spec: object) {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name },
    spec: { selector: { matchLabels: { foo: "bar" } }, ...spec },
  };
}

const runGuarded = async (at: TestNamespace, count: number): Promise<void> => {
  const names = Array.from({ length: count }, (_, index) => `pod-${index}`);
  for (const name of names) await at.create(podOf(name, PAUSE, { labels: { foo: "bar" } }));
  for (const name of names) await at.waitReady(name);
};

const waitAllowed = (at: TestNamespace, budget: ReturnType<typeof budgetOf>, count: number): Promise<Json> =>
  at.wait(at.pathOfObject(budget), `${count} allowed disruptions`, ({ metadata, status }) => {
    return status.observedGeneration === metadata.generation && status.disruptionsAllowed === count;
  });

async function blockEviction(at: TestNamespace): Promise<void> {
  const budget = budgetOf("foo", { minAvailable: 2 });
  await at.create(budget);
  await runGuarded(at, 3);
  await waitAllowed(at, budget, 1);
  const evict = (name: string): Promise<Json> => {
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
    return at.api.post(at.path(`pods/${name}/eviction`), eviction);
  };
  await at.api.update(at.pathOfObject(budget), ({ spec }) => {
    spec.minAvailable = 3;
  });
  await waitAllowed(at, budget, 0);
  await at.refused(429, evict("pod-0"), /would violate the pod's disruption budget/);
  await at.api.update(at.pathOfObject(budget), ({ spec }) => {
    spec.minAvailable = 2;
  });
  await waitAllowed(at, budget, 1);
  await evict("pod-0");
  await at.api.waitGone(at.path("pods/pod-0"));
  await waitAllowed(at, budget, 0);
  await at.refused(429, evict("pod-1"), /would violate the pod's disruption budget/);
  await at.api.delete(at.pathOfObject(budget));
  await evict("pod-1");
  await at.api.waitGone(at.path("pods/pod-1"));
}

async function observeBudget(at: TestNamespace): Promise<void> {
  const budget = budgetOf("foo", { minAvailable: 1 });
  await at.create(budget);
  await runGuarded(at, 3);
  const { status } = await waitAllowed(at, budget, 2);
  assert.deepEqual([status.currentHealthy, status.desiredHealthy, status.expectedPods], [3, 1, 3]);
}

async function changeBudgetStatus(at: TestNamespace): Promise<void> {
  const budget = budgetOf("foo", { minAvailable: 1 });
  const path = `${at.pathOfObject(budget)}/status`;
  await at.create(budget);
  await runGuarded(at, 1);
  await waitAllowed(at, budget, 0);
  const old = "2026-01-01T00:00:00Z";
  const updated = await at.api.update(path, ({ status }) => {
    status.disruptedPods = { "pod-0": old };
  });
  assert.deepEqual(Object.keys(updated.status.disruptedPods), ["pod-0"]);
  const patched = await at.api.patch(path, { status: { disruptedPods: null } });
  assert.equal(patched.status.disruptedPods, undefined);
}

export const rollouts: Behaviours = {
  "Daemon set should retry creating failed daemon pods": retryFailed,
  "Daemon set should run and stop complex daemon": selectNodes,
  "Daemon set should run and stop simple daemon": runDaemon,
  "Daemon set should update pod when spec was updated and update strategy is RollingUpdate": updateDaemon,
  "Deployment Deployment should have a working scale subresource": testScale("Deployment"),
  "Deployment RecreateDeployment should delete old pods and create new ones": recreate,
  "Deployment RollingUpdateDeployment should delete old pods and create new ones": rollUpdate,
  "Deployment deployment should delete old replica sets": limitHistory,
  "Deployment deployment should support proportional scaling": scaleInProportion,
  "Deployment deployment should support rollover": rollOver,
  "Deployment should validate Deployment Status endpoints": testStatus("Deployment"),
  "DisruptionController should block an eviction until the PDB is updated to allow it": blockEviction,
  "DisruptionController should observe PodDisruptionBudget status updated": observeBudget,
  "DisruptionController should update/patch PodDisruptionBudget status": changeBudgetStatus,
  "ReplicationController should adopt matching pods on creation": adopt,
  "ReplicationController should release no longer matching pods": release,
  "ReplicationController should surface a failure condition on a common issue like exceeded quota": surfaceQuota,
};
