/** Effects of the flags for CPUs, memory and topology, on a machine with two sockets. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type FakeMachine, fakeMachines, writeFakeMachine } from "../../../testing/agent/fake-machine.ts";
import type { AgentFlagName, Settings, TestAgent } from "../../../testing/agent/flag-harness.ts";
import { advanceClock, type Call, type Effect } from "./support.ts";

/** 12 CPUs: node 0 has 0-2 and 6-8, node 1 the others. */
const { dualSocketHt } = fakeMachines;
const staticCpus: Settings = { "cpu-manager-policy": "static", "system-reserved": "cpu=1" };
/** 100Mi of the eviction threshold are reserved as well. */
const staticMemory: Settings = {
  "memory-manager-policy": "Static",
  "system-reserved": "cpu=1,memory=412Mi",
  "reserved-memory": "0:memory=512Mi",
};

async function start(agent: TestAgent, machine: FakeMachine = dualSocketHt): Promise<void> {
  await writeFakeMachine(join(agent.directory, "sys"), machine);
  await agent.start();
}

/** A Guaranteed pod. */
function createPinned(agent: TestAgent, name: string, cpu: string, memory = "16Mi"): Pod {
  const list = { cpu, memory };
  const resources = { limits: list, requests: list };
  return agent.createPod(name, {
    containers: [{ name, image: "busybox:1", imagePullPolicy: "IfNotPresent", resources }],
  });
}

/** The cpuset of a container when it was created. */
function createdWith(agent: TestAgent, name: string): Record<string, unknown> {
  const calls = agent.fake.calls.filter(({ method }) => method === "createContainer");
  const call = calls.map(({ request }) => request as Call).find(({ config }) => isNamed(config, name));
  return (call?.config as { linux?: { resources?: Record<string, unknown> } } | undefined)?.linux?.resources ?? {};
}

function isNamed(config: Call["config"], name: string): boolean {
  return (config as { metadata?: { name?: string } } | undefined)?.metadata?.name === name;
}

async function runPinned(agent: TestAgent, name: string, cpu: string, memory?: string): Promise<unknown> {
  createPinned(agent, name, cpu, memory);
  await agent.untilRunning(name);
  return createdWith(agent, name).cpusetCpus;
}

/** The reason for which the node rejects the pod. */
async function runRejected(agent: TestAgent, name: string, cpu: string, memory?: string): Promise<string> {
  createPinned(agent, name, cpu, memory);
  const status = () => agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`)?.status;
  await agent.until(`${name} has failed`, () => status()?.phase === "Failed");
  return `${status()?.reason}: ${status()?.message}`;
}

export const resourceManagersEffects: Partial<Record<AgentFlagName, Effect>> = {
  "cpu-manager-policy": {
    set: staticCpus,
    async verify(t, agent) {
      await start(agent);
      t.equal(await runPinned(agent, "pinned", "2"), "1,7");
      t.equal(createdWith(agent, "pinned").cpuQuota, -1n, "CPUs of its own are not limited by time");
      t.equal(await runPinned(agent, "shared", "500m"), "0,2-6,8-11");
      const state = JSON.parse(readFileSync(join(agent.config.rootDir, "cpu_manager_state"), "utf8"));
      t.match(state, { policyName: "static", defaultCpuSet: "0,2-6,8-11" });
      t.equal((agent.getNode().status as { capacity: Record<string, string> }).capacity.cpu, "12");
    },
  },
  "cpu-manager-policy-options": {
    set: { ...staticCpus, "cpu-manager-policy-options": "full-pcpus-only=true" },
    async verify(t, agent) {
      await start(agent);
      const message = "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2";
      t.equal(await runRejected(agent, "odd", "1"), `SMTAlignmentError: Pod was rejected: ${message}`);
      t.equal(await runPinned(agent, "even", "2"), "1,7");
    },
  },
  "cpu-manager-reconcile-period": {
    set: { ...staticCpus, "cpu-manager-reconcile-period": "3s" },
    async verify(t, agent) {
      await start(agent);
      await runPinned(agent, "shared", "500m");
      await runPinned(agent, "pinned", "2");
      const updates = () =>
        agent.fake.calls
          .filter(({ method }) => method === "updateContainerResources")
          .map(({ request }) => (request as { linux?: { cpusetCpus?: string } }).linux?.cpusetCpus);
      const written = ["0,2-6,8-11", "1,7"];
      await agent.until("both have their CPUs", () => written.every((cpus) => updates().includes(cpus)));
      const before = updates().length;
      await advanceClock(agent, 3_000);
      t.equal(updates().length, before, "nothing changed");
      await runPinned(agent, "other", "2");
      const began = agent.clock.monotonic();
      await agent.until("the shared CPUs are fewer", () => updates().includes("0,3-6,9-11"));
      t.ok(agent.clock.monotonic() - began < 5_000, "sooner than by the default of 10 seconds");
    },
  },
  "reserved-cpus": {
    set: { "cpu-manager-policy": "static", "reserved-cpus": "3,9" },
    async verify(t, agent) {
      await start(agent);
      t.match(agent.getNode().status, { allocatable: { cpu: "10" } });
      t.equal(await runPinned(agent, "a", "6"), "0-2,6-8");
      t.equal(await runPinned(agent, "b", "4"), "4-5,10-11");
    },
  },
  "memory-manager-policy": {
    set: staticMemory,
    async verify(t, agent) {
      await start(agent);
      await runPinned(agent, "a", "100m", "64Mi");
      t.equal(createdWith(agent, "a").cpusetMems, "0");
      const state = JSON.parse(readFileSync(join(agent.config.rootDir, "memory_manager_state"), "utf8"));
      t.match(state, { policyName: "Static", machineState: { 0: { numberOfAssignments: 1 } } });
    },
  },
  "reserved-memory": {
    set: { ...staticMemory, "reserved-memory": "0:memory=256Mi;1:memory=128Mi" },
    async verify(t, agent) {
      const message = /the total amount "384Mi" of type "memory" is not equal to the value "512Mi" determined by/;
      await t.rejects(start(agent), message);
    },
  },
  "topology-manager-policy": {
    set: { ...staticCpus, "topology-manager-policy": "single-numa-node" },
    async verify(t, agent) {
      await start(agent);
      const message = "Pod was rejected: Resources cannot be allocated with Topology locality";
      t.equal(await runRejected(agent, "wide", "8"), `TopologyAffinityError: ${message}`);
      t.equal(await runPinned(agent, "narrow", "6"), "3-5,9-11");
    },
  },
  "topology-manager-scope": {
    set: { ...staticCpus, "topology-manager-policy": "single-numa-node", "topology-manager-scope": "pod" },
    async verify(t, agent) {
      await start(agent);
      const list = { cpu: "4", memory: "16Mi" };
      const container = { image: "busybox:1", resources: { limits: list, requests: list } };
      agent.createPod("two", { containers: ["a", "b"].map((name) => ({ name, ...container })) });
      const status = () => agent.api.objects.get("/api/v1/namespaces/default/pods/two")?.status;
      await agent.until("the pod does not fit on one node", () => status()?.phase === "Failed");
      t.equal(status()?.reason, "TopologyAffinityError");
    },
  },
  "topology-manager-policy-options": {
    set: {
      ...staticCpus,
      "topology-manager-policy": "best-effort",
      "topology-manager-policy-options": "prefer-closest-numa-nodes=true",
    },
    async verify(t, agent) {
      // Nodes 0 and 3 are close, 0 and 1 are not.
      const distances = [
        [10, 40, 40, 11],
        [40, 10, 40, 40],
        [40, 40, 10, 40],
        [11, 40, 40, 10],
      ];
      await start(agent, { sockets: 1, nodesPerSocket: 4, coresPerNode: 2, threads: 1, distances });
      t.equal(await runPinned(agent, "pair", "3"), "1,6-7");
    },
  },
};
