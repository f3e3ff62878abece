/** The examples of Kubernetes' documentation for each manager, with the whole agent and a played runtime. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { ResourceRequirements } from "../../api/core/resources/schema.ts";
import { listCpuScenarios } from "../../testing/agent/cpu-scenarios.ts";
import { makeDevices, startFakeDevicePlugin } from "../../testing/agent/fake-device-plugin.ts";
import { type FakeMachine, fakeMachines, writeFakeMachine } from "../../testing/agent/fake-machine.ts";
import { createTestAgent, type Settings, type TestAgent } from "../../testing/agent/flag-harness.ts";
import { setMemory } from "../flag-effects/agent/eviction-effects.ts";

t.setTimeout(120_000);

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const FOO = "hardware-vendor.example/foo";

function makeSpec(resources: ResourceRequirements, more: Partial<PodSpec> = {}): Partial<PodSpec> {
  return { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", resources }], ...more };
}

function statusOf(agent: TestAgent, name: string): NonNullable<Pod["status"]> {
  return (agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`) as Pod | undefined)?.status ?? {};
}

interface CreatedResources {
  readonly cpuQuota?: bigint;
  readonly memoryLimitInBytes?: bigint;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
}

/** What the runtime got for the container of the newest pod. */
function createdResources(agent: TestAgent): CreatedResources {
  const call = agent.fake.calls.findLast(({ method }) => method === "createContainer");
  const request = call?.request as { readonly config?: { linux?: { resources?: CreatedResources } } } | undefined;
  return request?.config?.linux?.resources ?? {};
}

/** The node's answer: what the container got, or the reason of the rejection. */
async function admit(agent: TestAgent, name: string, spec: Partial<PodSpec>): Promise<CreatedResources | string> {
  agent.createPod(name, spec);
  await agent.until(`${name} is decided`, () => ["Running", "Failed"].includes(statusOf(agent, name).phase ?? ""));
  const { phase, reason = "" } = statusOf(agent, name);
  return phase === "Failed" ? reason : createdResources(agent);
}

async function startOn(settings: Settings, machine: FakeMachine): Promise<TestAgent> {
  const agent = await createTestAgent("flag", settings);
  await writeFakeMachine(join(agent.directory, "sys"), machine);
  await agent.start();
  return agent;
}

/** Sets the working set of a pod, whose cgroup gets one of a container. */
function setPodMemory(agent: TestAgent, name: string, qos: string, bytes: number): void {
  const uid = agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`)?.metadata?.uid;
  const directory = join(agent.directory, "cgroup/memory/kubepods", qos, `pod${uid}`);
  for (const controller of ["cpu", "memory", "pids"]) {
    mkdirSync(join(agent.directory, "cgroup", controller, "kubepods", qos, `pod${uid}`, "c"), { recursive: true });
  }
  writeFileSync(join(directory, "memory.stat"), "total_inactive_file 0\n");
  writeFileSync(join(directory, "memory.usage_in_bytes"), String(bytes));
}

/** The pods that were evicted, in order. */
function listEvicted(agent: TestAgent): readonly string[] {
  type Event = { readonly reason?: string; readonly involvedObject?: { readonly name?: string } };
  const events = agent.api.listBelow("/api/v1/namespaces/default/events") as readonly Event[];
  return events.filter(({ reason }) => reason === "Evicted").map(({ involvedObject }) => involvedObject?.name ?? "");
}

const requestsOf = (memory: string): ResourceRequirements => ({ requests: { memory } });
const guaranteed = (cpu: string, memory: string, more: Record<string, string> = {}): ResourceRequirements => {
  const list = { cpu, memory, ...more };
  return { requests: list, limits: list };
};

t.test("node-pressure eviction: the order of pods under memory pressure", async (t) => {
  await using agent = await createTestAgent("flag", { "eviction-hard": "memory.available<1Gi" });
  await agent.start();
  const rows: readonly (readonly [name: string, qos: string, used: number, spec: Partial<PodSpec>])[] = [
    ["best-effort", "besteffort", 100, makeSpec({})],
    ["above-its-request", "burstable", 300, makeSpec(requestsOf("100Mi"))],
    ["above-but-important", "besteffort", 500, makeSpec({}, { priority: 1000 })],
    ["below-its-request", "burstable", 150, makeSpec(requestsOf("200Mi"))],
    ["guaranteed", "", 100, makeSpec(guaranteed("10m", "300Mi"))],
    ["critical", "besteffort", 900, makeSpec({}, { priority: 2_000_000_000 })],
  ];
  for (const [name, qos, used, spec] of rows) {
    agent.createPod(name, spec);
    await agent.untilRunning(name);
    setPodMemory(agent, name, qos, used * MIB);
  }
  setMemory(agent, GIB / 2);
  await agent.until("all but one are evicted", () => listEvicted(agent).length === 5);
  t.same(listEvicted(agent), [
    "above-its-request",
    "best-effort",
    "above-but-important",
    "below-its-request",
    "guaranteed",
  ]);
  t.equal(statusOf(agent, "critical").phase, "Running");
});

t.test("node-pressure eviction: unused images go before pods", async (t) => {
  await using agent = await createTestAgent("flag", {
    "eviction-hard": "nodefs.available<999Ti",
    "minimum-image-ttl-duration": "0s",
  });
  agent.fake.imageDirectory = agent.directory;
  agent.fake.addImage("docker.io/library/unused:1");
  agent.createPod("web");
  await agent.start();
  await agent.until("the eviction", () => listEvicted(agent).length > 0);
  t.notOk(agent.fake.present.has("docker.io/library/unused:1"));
  const methods = agent.fake.calls.map(({ method }) => method);
  const stopped = methods.indexOf("stopContainer");
  t.ok(stopped < 0 || methods.indexOf("removeImage") < stopped);
  const conditions = (agent.getNode().status as { conditions: readonly { type: string; status: string }[] }).conditions;
  t.same(
    conditions.filter(({ type, status }) => type.endsWith("Pressure") && status === "True").map(({ type }) => type),
    ["DiskPressure"],
  );
});

t.test("node-pressure eviction: under PID pressure the pod of the lowest priority goes first", async (t) => {
  await using agent = await createTestAgent("flag", { "eviction-hard": "pid.available<9999999" });
  agent.createPod("important", makeSpec({}, { priority: 100 }));
  agent.createPod("batch", makeSpec({}, { priority: -10 }));
  await agent.start();
  await agent.until("both are evicted", () => listEvicted(agent).length === 2);
  t.same(listEvicted(agent), ["batch", "important"]);
});

t.test("reserved resources: allocatable is capacity without reservations and the hard threshold", async (t) => {
  const settings = {
    "system-reserved": "cpu=500m,memory=100Mi,ephemeral-storage=1Gi",
    "svc-reserved": "cpu=250m,memory=200Mi",
    "eviction-hard": "memory.available<500Mi",
  };
  await using agent = await startOn(settings, fakeMachines.singleSocketHt);
  const { capacity = {}, allocatable = {} } = agent.getNode().status as Record<string, Record<string, string>>;
  const kib = (list: Record<string, string>): number => Number.parseInt(list.memory ?? "", 10);
  t.equal(kib(capacity) - kib(allocatable), 800 * 1024);
  t.equal(allocatable.cpu, `${Number(capacity.cpu) * 1000 - 750}m`);
});

t.test("resources of the pod as a whole: its cgroup has them, and its containers the limits", async (t) => {
  await using agent = await createTestAgent("flag", { "feature-gates": "PodLevelResources=true" });
  await agent.start();
  const resources = { requests: { cpu: "1", memory: "100Mi" }, limits: { cpu: "1", memory: "200Mi" } };
  const own = { requests: { memory: "50Mi" }, limits: { memory: "150Mi" } };
  t.match(await admit(agent, "limited", makeSpec(own, { resources })), { memoryLimitInBytes: 150n * 2n ** 20n });
  t.match(await admit(agent, "shared", makeSpec({}, { resources })), {
    memoryLimitInBytes: 200n * 2n ** 20n,
    cpuQuota: 100_000n,
  });
  const uid = agent.api.objects.get("/api/v1/namespaces/default/pods/limited")?.metadata?.uid;
  t.equal(agent.readCgroup(`memory/kubepods/burstable/pod${uid}/memory.limit_in_bytes`), String(200 * MIB));
  t.equal(agent.readCgroup(`cpu/kubepods/burstable/pod${uid}/cpu.cfs_quota_us`), "100000");
});

t.test("CPU manager: which pods get CPUs of their own", async (t) => {
  const settings = { "cpu-manager-policy": "static", "svc-reserved": "cpu=1" };
  await using agent = await startOn(settings, fakeMachines.singleSocketHt);
  const cpus: Record<string, string | undefined> = {};
  const rows = listCpuScenarios(2);
  for (const { title, resources } of rows) {
    const name = title.replaceAll(/\W+/g, "-");
    const created = await admit(agent, name, makeSpec(resources));
    if (typeof created === "object") cpus[title] = created.cpusetCpus;
  }
  t.same(cpus, {
    "best-effort": "0-7",
    "memory only": "0-7",
    burstable: "0-7",
    "guaranteed, whole CPUs": "1,5",
    "guaranteed, part of a CPU": "0,2-4,6-7",
    "limits only, which are requests as well": "2,6",
  });
  for (const { title, hasOwnCpus } of rows) t.equal(!cpus[title]?.startsWith("0"), hasOwnCpus, title);
});

t.test("memory manager: reservations of nodes add up, and Guaranteed pods have memory of their node", async (t) => {
  const settings = {
    "memory-manager-policy": "Static",
    "svc-reserved": "cpu=500m,memory=400Mi",
    "system-reserved": "cpu=500m,memory=100Mi",
    "eviction-hard": "memory.available<100Mi",
    "reserved-memory": "0:memory=300Mi;1:memory=300Mi",
  };
  const machine = { ...fakeMachines.dualSocketHt, memoryGib: 1 };
  await using agent = await startOn(settings, machine);
  t.match(await admit(agent, "guaranteed", makeSpec(guaranteed("300m", "600Mi"))), { cpusetMems: "0" });
  t.match(await admit(agent, "second", makeSpec(guaranteed("300m", "600Mi"))), { cpusetMems: "1" });
  t.match(await admit(agent, "burstable", makeSpec(requestsOf("100Mi"))), { cpusetMems: undefined });
  t.equal(await admit(agent, "third", makeSpec(guaranteed("300m", "600Mi"))), "UnexpectedAdmissionError");
  await using wrong = await createTestAgent("flag", { ...settings, "reserved-memory": "0:memory=300Mi" });
  await writeFakeMachine(join(wrong.directory, "sys"), machine);
  await t.rejects(wrong.start(), {
    message: /the total amount "300Mi" of type "memory" is not equal to the value "600Mi"/,
  });
});

/** Devices on node 1, and one on each node of the second row. */
const devicesOfNode1 = makeDevices("one-", 2, 1);
const devicesOfBoth = [...makeDevices("zero-", 1, 0), ...makeDevices("one-", 1, 1)];

t.test("topology manager: the answers of each policy to a pod with CPUs and devices", async (t) => {
  const rows = [
    ["none", devicesOfNode1, "1,7", "2,8"],
    ["best-effort", devicesOfNode1, "3,9", "4,10"],
    ["restricted", devicesOfNode1, "3,9", "4,10"],
    ["single-numa-node", devicesOfNode1, "3,9", "4,10"],
    ["best-effort", devicesOfBoth, "3-5,9-11", "1,7"],
    ["restricted", devicesOfBoth, "TopologyAffinityError", "1,7"],
    ["single-numa-node", devicesOfBoth, "TopologyAffinityError", "1,7"],
  ] as const;
  for (const [policy, devices, first, second] of rows) {
    const settings = { "cpu-manager-policy": "static", "topology-manager-policy": policy, "system-reserved": "cpu=1" };
    await using agent = await startOn(settings, fakeMachines.dualSocketHt);
    const directory = join(agent.config.rootDir, "device-plugins");
    await using plugin = await startFakeDevicePlugin({ directory, resource: FOO, devices });
    await plugin.register();
    const has = () => (agent.getNode().status as { allocatable?: Record<string, string> }).allocatable?.[FOO];
    await agent.until("the node has the devices", () => has() === "2");
    const isOnBoth = devices === devicesOfBoth;
    const answers: string[] = [];
    // Two devices are on one node, or on both with more CPUs than one node has.
    const wanted = [
      guaranteed(isOnBoth ? "6" : "2", "20Mi", { [FOO]: isOnBoth ? "2" : "1" }),
      guaranteed("2", "20Mi", isOnBoth ? {} : { [FOO]: "1" }),
    ];
    for (const [index, resources] of wanted.entries()) {
      const answer = await admit(agent, `pod-${index}`, makeSpec(resources));
      answers.push(typeof answer === "string" ? answer : (answer.cpusetCpus ?? ""));
    }
    t.same(answers, [first, second], `${policy}, devices of ${isOnBoth ? "both nodes" : "node 1"}`);
  }
});

t.test("graceful node shutdown: each range of priorities has its time", async (t) => {
  const groups = [
    [100_000, 10],
    [10_000, 180],
    [1000, 120],
    [0, 60],
  ].map(([priority, seconds]) => `{priority: ${priority}, shutdownGracePeriodSeconds: ${seconds}}`);
  const file = join(t.testdir({}), "agent.yaml");
  const head = "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n";
  writeFileSync(file, `${head}shutdownGracePeriodByPodPriority: [${groups.join(", ")}]\n`);
  await using agent = await createTestAgent("flag", { config: file });
  await agent.start();
  const pods: Readonly<Record<string, number>> = { first: 0, also: 999, second: 1000, third: 99_999, last: 100_000 };
  for (const [name, priority] of Object.entries(pods)) {
    const container = { name, image: "busybox:1", imagePullPolicy: "IfNotPresent" as const };
    agent.createPod(name, { priority, containers: [container], terminationGracePeriodSeconds: 600 });
    await agent.untilRunning(name);
  }
  await agent.until("the lock is taken", () => agent.logind.locks === 1);
  t.equal(agent.logind.delayMs, 370_000);
  agent.logind.notify(true);
  await agent.until("the lock is released", () => agent.logind.locks === 0);
  t.same(listStops(t, agent), ["also 60", "first 60", "second 120", "third 180", "last 10"]);
});

/** The containers that were stopped with their grace periods; those of one group by name. */
function listStops(t: Test, agent: TestAgent): readonly string[] {
  const stops = agent.fake.calls
    .filter(({ method }) => method === "stopContainer")
    .map(({ request }) => request as { readonly containerId?: string; readonly timeout?: bigint })
    .map(({ containerId = "", timeout }) => {
      return `${agent.fake.containers.get(containerId)?.status.metadata?.name} ${timeout}`;
    });
  t.equal(stops.length, 5);
  return [...stops.slice(0, 2).sort(), ...stops.slice(2)];
}
