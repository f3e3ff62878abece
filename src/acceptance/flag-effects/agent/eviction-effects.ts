/** Effects of the flags for evictions, with a played cgroup of the machine. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeCondition } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { AgentFlagName, Settings, TestAgent } from "../../../testing/agent/flag-harness.ts";
import { advanceClock, type Effect } from "./support.ts";

const GIB = 2 ** 30;

/** Sets what the machine has available, in bytes. */
export function setMemory(agent: TestAgent, available: number): void {
  const { memory = "" } = (agent.getNode().status as { capacity: Record<string, string> }).capacity;
  const directory = join(agent.directory, "cgroup/memory");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "memory.stat"), "total_inactive_file 0\n");
  writeFileSync(join(directory, "memory.usage_in_bytes"), String(Number.parseInt(memory, 10) * 1024 - available));
}

function statusOf(agent: TestAgent, name: string): NonNullable<Pod["status"]> {
  return (agent.api.objects.get(`/api/v1/namespaces/default/pods/${name}`)?.status ?? {}) as NonNullable<Pod["status"]>;
}

function hasPressure(agent: TestAgent): boolean {
  const { conditions = [] } = agent.getNode().status as { conditions?: readonly NodeCondition[] };
  return conditions.some(({ type, status }) => type === "MemoryPressure" && status === "True");
}

const untilEvicted = (agent: TestAgent): Promise<void> =>
  agent.until("the eviction", () => statusOf(agent, "web").reason === "Evicted");

/** A pod runs while half a GiB is available. */
async function startUnderPressure(agent: TestAgent): Promise<void> {
  await agent.start();
  agent.createPod("web", {
    terminationGracePeriodSeconds: 60,
    containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }],
  });
  await agent.untilRunning("web");
  setMemory(agent, GIB / 2);
}

const hard: Settings = { "eviction-hard": "memory.available<1Gi" };
const soft: Settings = {
  "eviction-soft": "memory.available<1Gi",
  "eviction-soft-grace-period": "memory.available=30s",
};

export const evictionEffects: Partial<Record<AgentFlagName, Effect>> = {
  "eviction-hard": {
    set: hard,
    async verify(t, agent) {
      await startUnderPressure(agent);
      await untilEvicted(agent);
      const message = /^The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. $/;
      t.match(statusOf(agent, "web"), { phase: "Failed", reason: "Evicted", message });
    },
  },
  "eviction-soft": {
    set: soft,
    async verify(t, agent) {
      await startUnderPressure(agent);
      await untilEvicted(agent);
      t.match(statusOf(agent, "web"), { phase: "Failed", reason: "Evicted" });
    },
  },
  "eviction-soft-grace-period": {
    set: soft,
    async verify(t, agent) {
      await startUnderPressure(agent);
      await agent.until("the pressure", () => hasPressure(agent));
      const began = agent.clock.monotonic();
      await untilEvicted(agent);
      const seconds = (agent.clock.monotonic() - began) / 1000;
      t.ok(seconds > 15 && seconds < 60, `evicted after ${seconds} s`);
    },
  },
  "eviction-max-pod-grace-period": {
    set: { ...soft, "eviction-max-pod-grace-period": "20" },
    async verify(t, agent) {
      await startUnderPressure(agent);
      await untilEvicted(agent);
      const stop = agent.fake.calls.find(({ method }) => method === "stopContainer");
      t.match(stop?.request, { timeout: 20n });
    },
  },
  "eviction-minimum-reclaim": {
    set: { ...hard, "eviction-minimum-reclaim": "memory.available=1Gi", "eviction-pressure-transition-period": "1s" },
    async verify(t, agent) {
      await startUnderPressure(agent);
      await untilEvicted(agent);
      setMemory(agent, 1.5 * GIB);
      for (let step = 0; step < 60; step++) await advanceClock(agent, 1000);
      t.equal(hasPressure(agent), true, "less than the threshold and the minimum reclaim together");
      setMemory(agent, 3 * GIB);
      await agent.until("the end of the pressure", () => !hasPressure(agent));
    },
  },
  "eviction-pressure-transition-period": {
    set: { ...hard, "eviction-pressure-transition-period": "20s" },
    async verify(t, agent) {
      await startUnderPressure(agent);
      await untilEvicted(agent);
      await agent.until("the pressure", () => hasPressure(agent));
      setMemory(agent, 3 * GIB);
      const began = agent.clock.monotonic();
      await agent.until("the end of the pressure", () => !hasPressure(agent));
      const seconds = (agent.clock.monotonic() - began) / 1000;
      t.ok(seconds > 5 && seconds < 60, `after ${seconds} s`);
    },
  },
  "kernel-memcg-notification": {
    set: { ...hard, "kernel-memcg-notification": "true", v: "3" },
    async verify(t, agent) {
      await agent.start();
      setMemory(agent, 2 * GIB);
      for (let step = 0; step < 20; step++) await advanceClock(agent, 1000);
      const count = () => agent.logged().split("Eviction manager: observations").length;
      const before = count();
      for (let step = 0; step < 100; step++) await advanceClock(agent, 20);
      const checks = count() - before;
      t.ok(checks > 12, `${checks} checks in 2 s`);
    },
  },
  "experimental-allocatable-ignore-eviction": {
    set: { "experimental-allocatable-ignore-eviction": "true" },
    async verify(t, agent) {
      await agent.start();
      const { capacity, allocatable } = agent.getNode().status as Record<string, Readonly<Record<string, string>>>;
      t.equal(allocatable?.memory, capacity?.memory);
    },
  },
};
