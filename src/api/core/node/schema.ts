import {
  boolean,
  documentedEnum,
  int32,
  int64,
  list,
  listMap,
  listSet,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { resourceList } from "../resources/schema.ts";

export const taint = object("core/v1.Taint", {
  key: required(1, string),
  value: optional(2, string),
  effect: required(3, named("v1.TaintEffect", documentedEnum("NoSchedule", "PreferNoSchedule", "NoExecute"))),
  timeAdded: pointer(4, time),
});
export type Taint = Infer<typeof taint>;

export const configMapNodeConfigSource = object("core/v1.ConfigMapNodeConfigSource", {
  namespace: required(1, string),
  name: required(2, string),
  uid: optional(3, named("types.UID", string)),
  resourceVersion: optional(4, string),
  kubeletConfigKey: required(5, string),
});
export type ConfigMapNodeConfigSource = Infer<typeof configMapNodeConfigSource>;

export const nodeConfigSource = object("core/v1.NodeConfigSource", {
  configMap: pointer(2, configMapNodeConfigSource),
});
export type NodeConfigSource = Infer<typeof nodeConfigSource>;

export const nodeSpec = object("core/v1.NodeSpec", {
  podCIDR: optional(1, string),
  podCIDRs: optional(7, listSet(string), { patchStrategy: "merge" }),
  providerID: optional(3, string),
  unschedulable: optional(4, boolean),
  taints: optional(5, list(taint)),
  configSource: pointer(6, nodeConfigSource),
  externalID: optional(2, string),
});
export type NodeSpec = Infer<typeof nodeSpec>;

export const nodeCondition = object("core/v1.NodeCondition", {
  type: required(1, named("v1.NodeConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastHeartbeatTime: optional(3, time),
  lastTransitionTime: optional(4, time),
  reason: optional(5, string),
  message: optional(6, string),
});
export type NodeCondition = Infer<typeof nodeCondition>;

export const nodeAddress = object("core/v1.NodeAddress", {
  type: required(1, named("v1.NodeAddressType", string)),
  address: required(2, string),
});
export type NodeAddress = Infer<typeof nodeAddress>;

export const daemonEndpoint = object("core/v1.DaemonEndpoint", {
  Port: required(1, int32),
});
export type DaemonEndpoint = Infer<typeof daemonEndpoint>;

export const nodeDaemonEndpoints = object("core/v1.NodeDaemonEndpoints", {
  kubeletEndpoint: optional(1, daemonEndpoint),
});
export type NodeDaemonEndpoints = Infer<typeof nodeDaemonEndpoints>;

export const nodeSwapStatus = object("core/v1.NodeSwapStatus", {
  capacity: pointer(1, int64),
});
export type NodeSwapStatus = Infer<typeof nodeSwapStatus>;

export const nodeSystemInfo = object("core/v1.NodeSystemInfo", {
  machineID: required(1, string),
  systemUUID: required(2, string),
  bootID: required(3, string),
  kernelVersion: required(4, string),
  osImage: required(5, string),
  containerRuntimeVersion: required(6, string),
  kubeletVersion: required(7, string),
  kubeProxyVersion: required(8, string),
  operatingSystem: required(9, string),
  architecture: required(10, string),
  swap: pointer(11, nodeSwapStatus),
});
export type NodeSystemInfo = Infer<typeof nodeSystemInfo>;

export const containerImage = object("core/v1.ContainerImage", {
  names: optional(1, list(string), { emitEmpty: true }),
  sizeBytes: optional(2, int64),
});
export type ContainerImage = Infer<typeof containerImage>;

export const attachedVolume = object("core/v1.AttachedVolume", {
  name: required(1, named("v1.UniqueVolumeName", string)),
  devicePath: required(2, string),
});
export type AttachedVolume = Infer<typeof attachedVolume>;

export const nodeConfigStatus = object("core/v1.NodeConfigStatus", {
  assigned: pointer(1, nodeConfigSource),
  active: pointer(2, nodeConfigSource),
  lastKnownGood: pointer(3, nodeConfigSource),
  error: optional(4, string),
});
export type NodeConfigStatus = Infer<typeof nodeConfigStatus>;

export const nodeRuntimeHandlerFeatures = object("core/v1.NodeRuntimeHandlerFeatures", {
  recursiveReadOnlyMounts: pointer(1, boolean, {
    featureGate: "RecursiveReadOnlyMounts",
  }),
  userNamespaces: pointer(2, boolean, {
    featureGate: "UserNamespacesSupport",
  }),
});
export type NodeRuntimeHandlerFeatures = Infer<typeof nodeRuntimeHandlerFeatures>;

export const nodeRuntimeHandler = object("core/v1.NodeRuntimeHandler", {
  name: optional(1, string, { emitEmpty: true }),
  features: pointer(2, nodeRuntimeHandlerFeatures),
});
export type NodeRuntimeHandler = Infer<typeof nodeRuntimeHandler>;

export const nodeFeatures = object("core/v1.NodeFeatures", {
  supplementalGroupsPolicy: pointer(1, boolean),
});
export type NodeFeatures = Infer<typeof nodeFeatures>;

export const nodeStatus = object("core/v1.NodeStatus", {
  capacity: optional(1, resourceList),
  allocatable: optional(2, resourceList),
  phase: optional(3, named("v1.NodePhase", documentedEnum("Pending", "Running", "Terminated"))),
  conditions: optional(4, listMap(nodeCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
  addresses: optional(5, listMap(nodeAddress, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
  daemonEndpoints: optional(6, nodeDaemonEndpoints),
  nodeInfo: optional(7, nodeSystemInfo),
  images: optional(8, list(containerImage)),
  volumesInUse: optional(9, list(named("v1.UniqueVolumeName", string))),
  volumesAttached: optional(10, list(attachedVolume)),
  config: pointer(11, nodeConfigStatus),
  runtimeHandlers: optional(12, list(nodeRuntimeHandler), {
    featureGate: "RecursiveReadOnlyMounts",
  }),
  features: pointer(13, nodeFeatures, {
    featureGate: "SupplementalGroupsPolicy",
  }),
});
export type NodeStatus = Infer<typeof nodeStatus>;

export const node = object("core/v1.Node", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, nodeSpec),
  status: optional(3, nodeStatus),
});
export type Node = Infer<typeof node>;
