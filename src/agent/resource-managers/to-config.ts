/** Converts flags to the configuration of the managers of CPUs, memory and devices. */
import type { EffectiveConfig } from "../config/load.ts";
import type { ResourceManagersConfig } from "./config.ts";
import { CpuSet } from "./cpu/cpu-set.ts";
import { printGoMap } from "./state-file.ts";

/** Throws Kubernetes' message for options whose gate is disabled. */
export function toResourceManagersConfig({ flags, gates }: EffectiveConfig): ResourceManagersConfig {
  const cpuOptions = flags["cpu-manager-policy-options"];
  const topologyOptions = flags["topology-manager-policy-options"];
  if (!gates.enabled("CPUManagerPolicyOptions") && Object.keys(cpuOptions).length > 0) {
    const options = printGoMap(cpuOptions, String);
    throw new Error(
      `CPU Manager policy options ${options} require feature gates "CPUManager", "CPUManagerPolicyOptions" enabled`,
    );
  }
  if (!gates.enabled("TopologyManagerPolicyOptions") && Object.keys(topologyOptions).length > 0) {
    const options = printGoMap(topologyOptions, String);
    throw new Error(
      `topology manager policy options ${options} require feature gates "TopologyManagerPolicyOptions" enabled`,
    );
  }
  return {
    cpu: {
      policy: flags["cpu-manager-policy"],
      options: cpuOptions,
      gates: {
        alpha: gates.enabled("CPUManagerPolicyAlphaOptions"),
        beta: gates.enabled("CPUManagerPolicyBetaOptions"),
      },
      // Kubernetes reconciles with each update of the node's status when no period is set.
      reconcileMs: flags["cpu-manager-reconcile-period"] || flags["node-status-update-frequency"],
      reservedCpus: flags["reserved-cpus"],
      quotaOffForExclusive: gates.enabled("DisableCPUQuotaWithExclusiveCPUs"),
      resizesExclusive: gates.enabled("InPlacePodVerticalScalingExclusiveCPUs"),
    },
    preparesClaims: gates.enabled("DynamicResourceAllocation"),
    reportsDeviceHealth: gates.enabled("ResourceHealthStatus"),
    servesDynamicResources: gates.enabled("SvcletPodResourcesDynamicResources"),
    servesPodResourcesGet: gates.enabled("SvcletPodResourcesGet"),
    memory: { policy: flags["memory-manager-policy"], reserved: flags["reserved-memory"] },
    topology: {
      policy: flags["topology-manager-policy"],
      scope: flags["topology-manager-scope"],
      options: topologyOptions,
      // This release has no option of the alpha stage.
      gates: { alpha: false, beta: gates.enabled("TopologyManagerPolicyBetaOptions") },
    },
  };
}

/** The reservations of the system and of the service; `--reserved-cpus` replaces the CPUs of both. */
export function toReservations({ flags }: EffectiveConfig): {
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly svcReserved: Readonly<Record<string, string>>;
} {
  const { "system-reserved": systemReserved, "svc-reserved": svcReserved, "reserved-cpus": cpus } = flags;
  if (cpus === "") return { systemReserved, svcReserved };
  const { cpu: _cpu, ...rest } = svcReserved;
  return { systemReserved: { ...systemReserved, cpu: String(CpuSet.parse(cpus).size) }, svcReserved: rest };
}
