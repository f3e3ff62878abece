/** CPU time to place 110 pods with CPUs and memory of their own, on a machine with eight NUMA nodes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ResourceManagers } from "../agent/resource-managers/resource-managers.ts";
import { readMachineTopology } from "../agent/resource-managers/topology/machine-topology.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { systemClock } from "../std/time/clock.ts";
import { fakeMachines, writeFakeMachine } from "../testing/agent/fake-machine.ts";
import { pinnedConfig } from "../testing/agent/manager-config.ts";
import type { Figures } from "./figures.ts";

const PODS = 110;
const GIB = 2 ** 30;

export async function measurePlacement(figures: Figures): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "svc-bench-"));
  try {
    const sysRoot = join(directory, "sys");
    await writeFakeMachine(sysRoot, { ...fakeMachines.eightNodesHt, memoryGib: 64 });
    for (const policy of ["none", "restricted"] as const) await measurePolicy(figures, directory, policy);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measurePolicy(figures: Figures, directory: string, topology: "none" | "restricted"): Promise<void> {
  const pods: Pod[] = [];
  const managers = await ResourceManagers.open({
    config: pinnedConfig(topology),
    rootDir: mkdtempSync(join(directory, "root-")),
    machine: await readMachineTopology(join(directory, "sys"), GIB),
    reservation: { cpu: "1", memory: "1Gi" },
    runtime: { updateContainerResources: async () => ({}) },
    activePods: () => pods.map((pod) => ({ pod, observation: { sandboxes: [], containers: [] } })),
    runningPods: () => [],
    onDevicesChange: () => {},
    registry: new MetricRegistry(),
    clock: systemClock,
    log: silentLogger,
  });
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  for (let index = 0; index < PODS; index++) {
    const pod = makePod(`pod-${index}`);
    pods.push(pod);
    const rejection = await managers.admit(pod);
    if (rejection !== undefined) throw new Error(`${rejection.reason}: ${rejection.message}`);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  figures.addAll(`place ${PODS} static pods on 256 CPUs, topology policy ${topology}`, {
    "µs CPU/pod": (user + system) / PODS,
    ms: performance.now() - began,
  });
  await managers.devices[Symbol.asyncDispose]();
}

function makePod(name: string): Pod {
  const list = { cpu: "2", memory: "1Gi" };
  return {
    metadata: { name, uid: name },
    spec: { containers: [{ name: "c", resources: { limits: list, requests: list } }] },
  };
}
