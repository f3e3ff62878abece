/** Capacity and allocatable of the node. */
import type { ResourceList } from "../../../api/core/resources/schema.ts";
import type { NodeConfig } from "../../agent-config.ts";
import { parseMillis, parseUnits } from "../../pods/resources/quantities.ts";
import type { MachineInfo, Usage } from "../machine/machine.ts";

export interface NodeCapacity {
  readonly capacity: ResourceList;
  readonly allocatable: ResourceList;
  readonly cpuMillis: number;
  readonly memoryBytes: number;
  readonly storageBytes: number;
  readonly pods: number;
}

export function computeNodeCapacity(machine: MachineInfo, usage: Usage, config: NodeConfig): NodeCapacity {
  const { reserved } = config;
  const evictionHard = config.allocatableIgnoresEviction ? {} : config.evictionHard;
  const perCore = config.podsPerCore > 0 ? config.podsPerCore * machine.cpus : config.maxPods;
  const pods = Math.min(config.maxPods, perCore);
  const huge = Object.entries(machine.hugePages).map(
    ([size, total]) => [`hugepages-${size}`, formatBinary(total)] as const,
  );
  const hugeTotal = Object.values(machine.hugePages).reduce((sum, each) => sum + each, 0);
  const memory = machine.memoryBytes;
  const storage = usage.disk.capacityBytes;
  const cpuMillis = Math.max(0, machine.cpus * 1000 - parseMillis(reserved.cpu));
  const memoryBytes = Math.max(
    0,
    memory - hugeTotal - parseUnits(reserved.memory) - computeThreshold(evictionHard["memory.available"], memory),
  );
  const storageBytes = Math.max(
    0,
    storage - parseUnits(reserved["ephemeral-storage"]) - computeThreshold(evictionHard["nodefs.available"], storage),
  );
  return {
    capacity: {
      cpu: String(machine.cpus),
      "ephemeral-storage": formatBinary(storage),
      ...Object.fromEntries(huge),
      memory: formatBinary(memory),
      pods: String(pods),
    },
    allocatable: {
      cpu: cpuMillis % 1000 === 0 ? String(cpuMillis / 1000) : `${cpuMillis}m`,
      "ephemeral-storage": String(storageBytes),
      ...Object.fromEntries(huge),
      memory: formatBinary(memoryBytes),
      pods: String(pods),
    },
    cpuMillis,
    memoryBytes,
    storageBytes,
    pods,
  };
}

/**
 * An eviction threshold in bytes: `100Mi`, or a share of the whole: `10%`. Absent: 0, as for the shares that Kubernetes
 * ignores. A share has the precision of Kubernetes, 32 bits.
 */
export function computeThreshold(threshold: string | undefined, whole: number): number {
  if (threshold === undefined || threshold === "" || threshold === "0%" || threshold === "100%") return 0;
  return computeShare(threshold, whole);
}

/** A quantity, or a share of the whole with the precision of Kubernetes. */
export function computeShare(text: string, whole: number): number {
  if (!text.endsWith("%")) return parseUnits(text);
  return Math.trunc(whole * Math.fround(Math.fround(Number(text.slice(0, -1))) / 100));
}

function formatBinary(amount: number): string {
  return amount === 0 ? "0" : amount % 1024 === 0 ? `${amount / 1024}Ki` : String(amount);
}
