/** Effects of the flags for resources and node allocatable. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentFlagName } from "../../../testing/agent/flag-harness.ts";
import { type Effect, expectCgroupFile, expectNode } from "./support.ts";

export const resourcesEffects: Partial<Record<AgentFlagName, Effect>> = {
  "enforce-node-allocatable": {
    set: { "enforce-node-allocatable": "", "system-reserved": "memory=512Mi" },
    async verify(t, agent) {
      await agent.start();
      const { memory = "" } = (agent.getNode().status as { capacity: Record<string, string> }).capacity;
      await expectCgroupFile(
        t,
        agent,
        "memory/kubepods/memory.limit_in_bytes",
        String(Number.parseInt(memory, 10) * 1024),
      );
    },
  },
  "system-reserved-cgroup": {
    set: {
      "enforce-node-allocatable": "pods,system-reserved",
      "system-reserved": "memory=512Mi",
      "system-reserved-cgroup": "/sys.slice",
    },
    async verify(t, agent) {
      await t.rejects(
        agent.start(),
        /Failed to enforce System Reserved Cgroup Limits on "\/sys.slice": .*missing paths/,
      );
      for (const name of ["cpu", "memory", "pids"]) mkdirSync(join(agent.directory, `cgroup/${name}/sys.slice`));
      await agent.start();
      await expectCgroupFile(t, agent, "memory/sys.slice/memory.limit_in_bytes", String(512 * 2 ** 20));
      const { memory = "" } = (agent.getNode().status as { capacity: Record<string, string> }).capacity;
      const rest = Number.parseInt(memory, 10) * 1024 - 512 * 2 ** 20;
      await expectCgroupFile(t, agent, "memory/kubepods/memory.limit_in_bytes", String(rest));
    },
  },
  "svc-reserved-cgroup": {
    set: {
      "enforce-node-allocatable": "svc-reserved",
      "svc-reserved": "cpu=500m,pid=100",
      "svc-reserved-cgroup": "/svc.slice",
    },
    async verify(t, agent) {
      for (const name of ["cpu", "memory", "pids"]) mkdirSync(join(agent.directory, `cgroup/${name}/svc.slice`));
      await agent.start();
      await expectCgroupFile(t, agent, "cpu/svc.slice/cpu.shares", "512");
      await expectCgroupFile(t, agent, "pids/svc.slice/pids.max", "100");
    },
  },
  "qos-reserved": {
    set: { "qos-reserved": "memory=50%", "feature-gates": "QOSReserved=true" },
    async verify(t, agent) {
      await agent.start();
      const resources = { limits: { cpu: "1m", memory: "64Mi" }, requests: { cpu: "1m", memory: "64Mi" } };
      agent.createPod("web", {
        containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", resources }],
      });
      await agent.untilRunning("web");
      const { memory = "" } = (agent.getNode().status as { allocatable: Record<string, string> }).allocatable;
      const rest = String(Number.parseInt(memory, 10) * 1024 - 32 * 2 ** 20);
      await expectCgroupFile(t, agent, "memory/kubepods/burstable/memory.limit_in_bytes", rest);
      await expectCgroupFile(t, agent, "memory/kubepods/besteffort/memory.limit_in_bytes", rest);
    },
  },
  "pod-max-pids": {
    set: { "pod-max-pids": "123" },
    async verify(t, agent) {
      await agent.start();
      const { metadata } = agent.createPod("p");
      await agent.untilRunning("p");
      const path = join(agent.directory, `cgroup/pids/kubepods/besteffort/pod${metadata?.uid}/pids.max`);
      t.equal(readFileSync(path, "utf8"), "123");
    },
  },
  "max-pods": { set: { "max-pods": "7" }, verify: expectNode({ status: { capacity: { pods: "7" } } }) },
  "pods-per-core": {
    set: { "pods-per-core": "1" },
    async verify(t, agent) {
      await agent.start();
      const { cpu, pods } = (agent.getNode().status as { capacity: Record<string, string> }).capacity;
      t.equal(pods, cpu);
    },
  },
  "svc-reserved": {
    set: { "svc-reserved": "cpu=300m" },
    verify: expectNode({ status: { allocatable: { cpu: /00m$/ } } }),
  },
  "system-reserved": {
    set: { "system-reserved": "cpu=200m", "svc-reserved": "cpu=100m" },
    verify: expectNode({ status: { allocatable: { cpu: /700m$/ } } }),
  },
};
