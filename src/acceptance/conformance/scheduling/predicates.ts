/** What keeps pods from a node, and preemption on it. */
import assert from "node:assert/strict";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import {
  type Behaviour,
  type Behaviours,
  conditionOf,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";

const waitScheduled = (at: TestNamespace, name: string): Promise<Json> =>
  at.waitForPod(name, "a node", ({ status }) => conditionOf(status, "PodScheduled")?.status === "True");

async function expectUnschedulable(at: TestNamespace, name: string, message: RegExp): Promise<void> {
  const { spec, status } = await at.waitForPod(name, "a refusal", ({ status }) => {
    return conditionOf(status, "PodScheduled")?.status === "False";
  });
  assert.equal(spec.nodeName, undefined);
  assert.equal(conditionOf(status, "PodScheduled").reason, "Unschedulable");
  assert.match(conditionOf(status, "PodScheduled").message, message);
}

/** The node has an amount of a resource of the test's own, and each priority class a name of it. */
async function withResource(
  at: TestNamespace,
  amount: number,
  use: (resource: string) => Promise<void>,
): Promise<void> {
  const resource = `example.com/${at.name}`;
  const path = `/api/v1/nodes/${(await at.node()).metadata.name}/status`;
  const set = (value: string | null): Promise<Json> =>
    at.api.patch(path, { status: { capacity: { [resource]: value }, allocatable: { [resource]: value } } });
  const classOf = (name: string) => at.pathOf("scheduling.k8s.io/v1", "PriorityClass", `${at.name}-${name}`);
  await set(String(amount));
  try {
    for (const [name, value] of Object.entries({ low: 1, high: 1000 })) {
      await at.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {
        metadata: { name: `${at.name}-${name}` },
        value,
      });
    }
    await use(resource);
  } finally {
    for (const name of ["low", "high"]) await at.api.send(`DELETE ${classOf(name)}`);
    await set(null);
  }
}

function makeSizedPod(name: string, resource: string, amount: number, spec: object = {}) {
  const amounts = { [resource]: String(amount) };
  return podOf(name, PAUSE, { container: { resources: { requests: amounts, limits: amounts } }, spec });
}

const limitResources: Behaviour = (at) =>
  withResource(at, 10, async (resource) => {
    await at.create(makeSizedPod("filler", resource, 7));
    await waitScheduled(at, "filler");
    await at.create(makeSizedPod("additional", resource, 4));
    await expectUnschedulable(at, "additional", /Insufficient example\.com\//);
    await at.create(makeSizedPod("fitting", resource, 3));
    await waitScheduled(at, "fitting");
    const cpu = podOf("huge", PAUSE, { container: { resources: { requests: { cpu: "1000" } } } });
    await at.create(cpu);
    await expectUnschedulable(at, "huge", /Insufficient cpu/);
  });

async function selectNode(at: TestNamespace): Promise<void> {
  const { metadata } = await at.node();
  const key = `kubernetes.example.com/${at.name}`;
  await at.api.patch(`/api/v1/nodes/${metadata.name}`, { metadata: { labels: { [key]: "42" } } });
  try {
    await at.create(podOf("with-labels", PAUSE, { spec: { nodeSelector: { [key]: "42" } } }));
    assert.equal((await waitScheduled(at, "with-labels")).spec.nodeName, metadata.name);
  } finally {
    await at.api.patch(`/api/v1/nodes/${metadata.name}`, { metadata: { labels: { [key]: null } } });
  }
}

async function selectNone(at: TestNamespace): Promise<void> {
  await at.create(podOf("restricted-pod", PAUSE, { spec: { nodeSelector: { label: "nonempty" } } }));
  await expectUnschedulable(at, "restricted-pod", /node\(s\) didn't match Pod's node affinity\/selector/);
}

const portPod = (name: string, port: object) =>
  podOf(name, PAUSE, { container: { ports: [{ containerPort: 8080, hostPort: 54_322, ...port }] } });

async function conflictPorts(at: TestNamespace): Promise<void> {
  await at.create(portPod("pod4", { hostIP: "0.0.0.0" }));
  await waitScheduled(at, "pod4");
  const { status } = await at.waitReady("pod4");
  await at.create(portPod("pod5", { hostIP: status.hostIP }));
  await expectUnschedulable(at, "pod5", /node\(s\) didn't have free ports for the requested pod ports/);
}

const preempt = (critical: boolean): Behaviour => {
  return (at) =>
    withResource(at, 5, async (resource) => {
      const low = { priorityClassName: `${at.name}-low` };
      await at.runPod(makeSizedPod("pod0-low-priority", resource, 3, low));
      const high = { priorityClassName: critical ? "system-cluster-critical" : `${at.name}-high` };
      await at.create(makeSizedPod("preemptor", resource, 3, high));
      await waitScheduled(at, "preemptor");
      await at.api.waitGone(at.path("pods/pod0-low-priority"));
      await at.waitReady("preemptor");
    });
};

const markDisrupted: Behaviour = (at) =>
  withResource(at, 1, async (resource) => {
    const FINALIZER = "example.com/test-finalizer";
    const victim = makeSizedPod("victim-pod", resource, 1, { priorityClassName: `${at.name}-low` });
    await at.runPod({ ...victim, metadata: { ...victim.metadata, finalizers: [FINALIZER] } });
    await at.create(makeSizedPod("preemptor-pod", resource, 1, { priorityClassName: `${at.name}-high` }));
    const { status } = await at.waitForPod("victim-pod", "a deletion", ({ metadata }) => metadata.deletionTimestamp);
    const condition = conditionOf(status, "DisruptionTarget");
    assert.equal(condition.status, "True");
    assert.equal(condition.reason, "PreemptionByScheduler");
    await at.api.patch(at.path("pods/victim-pod"), { metadata: { finalizers: null } });
    await at.api.waitGone(at.path("pods/victim-pod"));
    await until("the preemptor on the node", async () => (await at.pod("preemptor-pod")).spec.nodeName !== undefined);
  });

export const predicates: Behaviours = {
  "SchedulerPredicates validates resource limits of pods that are allowed to run": limitResources,
  "SchedulerPredicates validates that NodeSelector is respected if matching": selectNode,
  "SchedulerPredicates validates that NodeSelector is respected if not matching": selectNone,
  "SchedulerPredicates validates that there exists conflict between pods with same hostPort and protocol but one using 0.0.0.0 hostIP":
    conflictPorts,
  "SchedulerPreemption validates basic preemption works": preempt(false),
  "SchedulerPreemption validates lower priority pod preemption by critical pod": preempt(true),
  "SchedulerPreemption validates pod disruption condition is added to the preempted pod": markDisrupted,
};
