/** Preemption by four levels of priority, and a second node. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import { createJoinCommand, Machine, Network } from "../../cluster/machine.ts";
import { workloadOf } from "../apps/workloads.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, PAUSE, podOf, type TestNamespace, templateOf } from "../harness/behaviour.ts";

const RESOURCE = "example.com/fakecpu";
const CAPACITY = 1000;

/** ReplicaSets of rising priority, of which the resource holds `fitting` pods at a time. */
const levels = [
  { replicas: 5, amount: 200, fitting: 5 },
  { replicas: 4, amount: 300, fitting: 3 },
  { replicas: 4, amount: 450, fitting: 2 },
  { replicas: 1, amount: 800, fitting: 1 },
];

async function preemptPath(at: TestNamespace): Promise<void> {
  const path = `/api/v1/nodes/${(await at.node()).metadata.name}/status`;
  const amount = (value: string | null) => ({ [RESOURCE]: value });
  const set = (value: string | null): Promise<Json> =>
    at.api.patch(path, { status: { capacity: amount(value), allocatable: amount(value) } });
  const classes = levels.map((_, index) => ({
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: `${at.name}-p${index + 1}` },
    value: index + 1,
  }));
  await set(String(CAPACITY));
  try {
    for (const each of classes) await at.create(each);
    for (const [index, { replicas, amount, fitting }] of levels.entries()) {
      const name = `rs-pod${index + 1}`;
      const resources = { requests: { [RESOURCE]: String(amount) }, limits: { [RESOURCE]: String(amount) } };
      const spec = { priorityClassName: `${at.name}-p${index + 1}` };
      const template = templateOf({ app: name }, PAUSE, { container: { resources }, spec });
      const object = workloadOf("ReplicaSet", name, replicas, { template });
      await at.create(object);
      await until(`${fitting} ready pods of ${name}`, async () => (await readyReplicas(at, index)) >= fitting).catch(
        async (cause) => {
          throw new Error(await at.run("get pods,events"), { cause });
        },
      );
    }
    // What the highest level leaves holds one pod of the lowest.
    await until("the pods of the lowest level that fit again", async () => (await readyReplicas(at, 0)) === 1);
    assert.equal(await readyReplicas(at, 3), 1);
    assert.equal(await readyReplicas(at, 2), 0);
    for (const [index, { replicas }] of levels.entries()) {
      const path = at.pathOf("apps/v1", "ReplicaSet", `rs-pod${index + 1}`);
      await at.wait(path, `${replicas} pods`, ({ status }) => status.replicas === replicas);
    }
    const preempted = await at.api.list(`${at.path("events")}?fieldSelector=reason=Preempted`);
    assert.ok(preempted.length >= 5, "events of preemption");
  } finally {
    for (const each of classes) await at.api.send(`DELETE ${at.pathOfObject(each)}`);
    await set(null);
  }
}

async function readyReplicas(at: TestNamespace, level: number): Promise<number> {
  const { status } = await at.api.get(at.pathOf("apps/v1", "ReplicaSet", `rs-pod${level + 1}`));
  return status.readyReplicas ?? 0;
}

/** Another machine joins; both nodes have no taints, and run pods that the scheduler assigns. */
async function runTwoNodes(at: TestNamespace): Promise<void> {
  await using network = await Network.create();
  await using machine = await Machine.create(network, "n2", 11);
  const nodes = (): Promise<readonly Json[]> => at.api.list("/api/v1/nodes");
  const isUsable = ({ spec, status }: Json): boolean =>
    conditionOf(status, "Ready")?.status === "True" && spec.unschedulable !== true && (spec.taints ?? []).length === 0;
  const { addresses } = (await at.node()).status;
  const { address } = addresses.find(({ type }: Json) => type === "InternalIP");
  machine.startAgent(await createJoinCommand(at.cluster, network, address));
  try {
    await until("two untainted nodes", async () => (await nodes()).filter(isUsable).length === 2).catch((cause) => {
      throw new Error(machine.log(), { cause });
    });
    for (const { metadata } of await nodes()) {
      const spec = { nodeSelector: { "kubernetes.io/hostname": metadata.name } };
      const container = metadata.name === machine.name ? { image: machine.image } : {};
      const pod = await at.runPod(podOf(`on-${metadata.name}`, PAUSE, { container, spec }));
      assert.equal(pod.spec.nodeName, metadata.name);
      await at.api.delete(at.path(`pods/on-${metadata.name}`));
      await at.api.waitGone(at.path(`pods/on-${metadata.name}`));
    }
  } finally {
    await machine.stopAgent();
    await at.api.send(`DELETE /api/v1/nodes/${machine.name}`);
  }
}

export const schedulingOfNodes: Behaviours = {
  "SchedulerPreemption PreemptionExecutionPath runs ReplicaSets to verify preemption running path": preemptPath,
  "Conformance Tests should have at least two untainted nodes": runTwoNodes,
};
