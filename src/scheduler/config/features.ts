import type { FeatureLookup } from "../../flags/gates.ts";
import type { DeviceFeatures } from "../plugins/dynamic-resources/device-requests.ts";

/** Features that gates switch off. */
export interface SchedulerFeatures {
  /** Victims are deleted in the background. */
  readonly asyncPreemption: boolean;
  /** Pods do not wait for the end of their back-off while no other pod is active. */
  readonly popFromBackoff: boolean;
  /** Plugins examine events; otherwise each registered event retries the pods that the plugin rejected. */
  readonly queueingHints: boolean;
  /** Nodes are scored by the storage capacity that a pod leaves. */
  readonly storageCapacityScoring: boolean;
  /** Resource claims of pods are allocated; undefined: pods have none. */
  readonly dynamicResources: DeviceFeatures | undefined;
}

export const defaultFeatures: SchedulerFeatures = {
  asyncPreemption: true,
  popFromBackoff: true,
  queueingHints: true,
  storageCapacityScoring: false,
  dynamicResources: undefined,
};

export function schedulerFeatures(gates: FeatureLookup): SchedulerFeatures {
  return {
    asyncPreemption: gates.has("SchedulerAsyncPreemption"),
    popFromBackoff: gates.has("SchedulerPopFromBackoffQ"),
    queueingHints: gates.has("SchedulerQueueingHints"),
    storageCapacityScoring: gates.has("StorageCapacityScoring"),
    dynamicResources: gates.has("DynamicResourceAllocation") ? deviceFeatures(gates) : undefined,
  };
}

function deviceFeatures(gates: FeatureLookup): DeviceFeatures {
  return {
    adminAccess: gates.has("DRAAdminAccess"),
    prioritizedList: gates.has("DRAPrioritizedList"),
    partitionableDevices: gates.has("DRAPartitionableDevices"),
    deviceTaints: gates.has("DRADeviceTaints"),
  };
}
