/** The feature gates that `svc controller-manager` reads. */
import type { GateTable } from "../gates.ts";

export const controllerManagerGates: GateTable = {
  APIServerIdentity: { stage: "BETA", default: true, effective: true },
  AllAlpha: { stage: "ALPHA", default: false, effective: true },
  AllBeta: { stage: "BETA", default: false, effective: true },
  ClientsAllowCBOR: { stage: "ALPHA", default: false, effective: true },
  ClientsPreferCBOR: { stage: "ALPHA", default: false, effective: true },
  DRAAdminAccess: { stage: "ALPHA", default: false, effective: true },
  DRADeviceTaints: { stage: "ALPHA", default: false, effective: true },
  DRAPrioritizedList: { stage: "ALPHA", default: false, effective: true },
  DeploymentReplicaSetTerminatingReplicas: { stage: "ALPHA", default: false, effective: true },
  DynamicResourceAllocation: { stage: "BETA", default: false, effective: true },
  MaxUnavailableStatefulSet: { stage: "ALPHA", default: false, effective: true },
  MultiCIDRServiceAllocator: { stage: "GA", default: true, effective: true },
  OrderedNamespaceDeletion: { stage: "BETA", default: true, effective: true },
  PodDeletionCost: { stage: "BETA", default: true, effective: true },
  PreferSameTrafficDistribution: { stage: "ALPHA", default: false, effective: true },
  SeparateTaintEvictionController: { stage: "BETA", default: true, effective: true },
  WatchListClient: { stage: "BETA", default: false, effective: true },
  StorageVersionAPI: { stage: "ALPHA", default: false, effective: true },
  StorageVersionMigrator: { stage: "ALPHA", default: false, effective: true },
};
