/** The feature gates that `svc scheduler` reads. */
import type { GateTable } from "../gates.ts";

export const schedulerGates: GateTable = {
  AllAlpha: { stage: "ALPHA", default: false, effective: true },
  AllBeta: { stage: "BETA", default: false, effective: true },
  ClientsAllowCBOR: { stage: "ALPHA", default: false, effective: true },
  ClientsPreferCBOR: { stage: "ALPHA", default: false, effective: true },
  DRAAdminAccess: { stage: "ALPHA", default: false, effective: true },
  DRADeviceTaints: { stage: "ALPHA", default: false, effective: true },
  DRAPartitionableDevices: { stage: "ALPHA", default: false, effective: true },
  DRAPrioritizedList: { stage: "ALPHA", default: false, effective: true },
  DynamicResourceAllocation: { stage: "BETA", default: false, effective: true },
  SchedulerAsyncPreemption: { stage: "BETA", default: true, effective: true },
  SchedulerPopFromBackoffQ: { stage: "BETA", default: true, effective: true },
  SchedulerQueueingHints: { stage: "BETA", default: true, effective: true },
  StorageCapacityScoring: { stage: "ALPHA", default: false, effective: true },
  WatchListClient: { stage: "BETA", default: false, effective: true },
};
