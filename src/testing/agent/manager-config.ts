/** Configurations of the managers of CPUs, memory and devices. */
import type { ResourceManagersConfig } from "../../agent/resource-managers/config.ts";
import type { TopologyPolicy } from "../../agent/resource-managers/topology/topology-manager.ts";

const gates = { alpha: true, beta: true };

/** Nothing is pinned; all options may be set. */
export const unpinnedConfig: ResourceManagersConfig = {
  cpu: {
    policy: "none",
    options: {},
    gates,
    reconcileMs: 10_000,
    reservedCpus: "",
    quotaOffForExclusive: true,
    resizesExclusive: false,
  },
  memory: { policy: "None", reserved: [] },
  topology: { policy: "none", scope: "container", options: {}, gates },
  preparesClaims: false,
  reportsDeviceHealth: false,
  servesDynamicResources: false,
  servesPodResourcesGet: false,
};

/** CPUs and memory of Guaranteed pods are pinned; 1 GiB of NUMA node 0 is reserved. */
export function pinnedConfig(policy: TopologyPolicy): ResourceManagersConfig {
  return {
    ...unpinnedConfig,
    cpu: { ...unpinnedConfig.cpu, policy: "static" },
    memory: { policy: "Static", reserved: [{ numaNode: 0, limits: { memory: "1Gi" } }] },
    topology: { ...unpinnedConfig.topology, policy },
  };
}
