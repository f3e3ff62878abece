/** Gates that Kubernetes 1.33 enables and whose feature this build lacks: programs report them as disabled. */
import type { GateTable } from "../gates.ts";

/** By what is missing. A gate leaves the list with the change that adds its feature. */
export const missingFeatures: Readonly<Record<string, readonly string[]>> = {
  "traces are not exported": ["APIServerTracing", "SvcletTracing"],
  "validation is not generated from declarations": ["DeclarativeValidation"],
  "requests have no thread of their own": ["APIServingWithRoutine"],
  "watches of a separate cache process": ["SeparateCacheWatchRPC"],
  "the group resource.k8s.io is not served": ["DRAResourceClaimDeviceStatus"],
  "no controller acts on workloads": [
    "CronJobsScheduledAnnotation",
    "ElasticIndexedJob",
    "JobBackoffLimitPerIndex",
    "JobManagedBy",
    "JobPodReplacementPolicy",
    "JobSuccessPolicy",
    "LogarithmicScaleDown",
    "PodDeletionCost",
    "PodIndexLabel",
    "StatefulSetAutoDeletePVC",
    "StatefulSetStartOrdinal",
  ],
  "no controller acts on services": ["TopologyAwareHints"],
  "no proxy for services": ["NFTablesProxyMode", "ServiceTrafficDistribution"],
  "no controller binds volumes": ["CSIMigrationPortworx", "HonorPVReclaimPolicy"],
  "taints are handled by the controller of the node lifecycle": ["SeparateTaintEvictionController"],
  "the agent assigns no CPUs, memory or devices": [
    "CPUManagerPolicyBetaOptions",
    "CPUManagerPolicyOptions",
    "DevicePluginCDIDevices",
    "DisableCPUQuotaWithExclusiveCPUs",
    "MemoryManager",
    "TopologyManagerPolicyBetaOptions",
    "TopologyManagerPolicyOptions",
  ],
  "the agent ends no pods when the host shuts down": ["GracefulNodeShutdown", "GracefulNodeShutdownBasedOnPodPriority"],
  "the agent takes the cgroup driver from its flag": ["SvcletCgroupDriverFromCRI"],
  "the agent makes no checkpoints of containers": ["ContainerCheckpoint"],
  "the agent removes images by disk usage only": ["ImageMaximumGCAge"],
  "the agent has no quotas of file systems": ["LocalStorageCapacityIsolationFSQuotaMonitoring"],
  "images and containers are on one file system": ["SvcletSeparateDiskGC"],
  "volumes are labelled file by file": ["SELinuxChangePolicy", "SELinuxMountReadWriteOncePod"],
  "nodes run Linux": ["WinDSR", "WinOverlay", "WindowsHostNetwork"],
};

const missing: ReadonlySet<string> = new Set(Object.values(missingFeatures).flat());

/** The table with the actual state of gates whose feature is missing. */
export function markMissing(table: GateTable): GateTable {
  return Object.fromEntries(
    Object.entries(table).map(([name, gate]) => {
      const isReported = gate.effective !== true && gate.default && missing.has(name);
      return [name, isReported ? { ...gate, actual: false } : gate];
    }),
  );
}
