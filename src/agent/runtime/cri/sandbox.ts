import { bigInt64, boolean, list, map, message, optional, string, uint32 } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { containerStatus } from "./container-status.ts";
import { podSandboxState, supplementalGroupsPolicy } from "./enums.ts";
import { namespace, podIP } from "./runtime-status.ts";
import {
  dnsConfig,
  int64Value,
  linuxContainerResources,
  namespaceOption,
  portMapping,
  securityProfile,
  seLinuxOption,
} from "./shared.ts";
import { windowsPodSandboxConfig } from "./windows.ts";

export const linuxSandboxSecurityContext = message("runtime.v1.LinuxSandboxSecurityContext", {
  namespaceOptions: optional(1, namespaceOption),
  selinuxOptions: optional(2, seLinuxOption),
  runAsUser: optional(3, int64Value),
  runAsGroup: optional(8, int64Value),
  readonlyRootfs: optional(4, boolean),
  supplementalGroups: optional(5, list(bigInt64)),
  supplementalGroupsPolicy: optional(11, supplementalGroupsPolicy),
  privileged: optional(6, boolean),
  seccomp: optional(9, securityProfile),
  apparmor: optional(10, securityProfile),
  seccompProfilePath: optional(7, string),
});
export type LinuxSandboxSecurityContext = Infer<typeof linuxSandboxSecurityContext>;

export const linuxPodSandboxConfig = message("runtime.v1.LinuxPodSandboxConfig", {
  cgroupParent: optional(1, string),
  securityContext: optional(2, linuxSandboxSecurityContext),
  sysctls: optional(3, map(string)),
  overhead: optional(4, linuxContainerResources),
  resources: optional(5, linuxContainerResources),
});
export type LinuxPodSandboxConfig = Infer<typeof linuxPodSandboxConfig>;

export const podSandboxMetadata = message("runtime.v1.PodSandboxMetadata", {
  name: optional(1, string),
  uid: optional(2, string),
  namespace: optional(3, string),
  attempt: optional(4, uint32),
});
export type PodSandboxMetadata = Infer<typeof podSandboxMetadata>;

export const podSandboxConfig = message("runtime.v1.PodSandboxConfig", {
  metadata: optional(1, podSandboxMetadata),
  hostname: optional(2, string),
  logDirectory: optional(3, string),
  dnsConfig: optional(4, dnsConfig),
  portMappings: optional(5, list(portMapping)),
  labels: optional(6, map(string)),
  annotations: optional(7, map(string)),
  linux: optional(8, linuxPodSandboxConfig),
  windows: optional(9, windowsPodSandboxConfig),
});
export type PodSandboxConfig = Infer<typeof podSandboxConfig>;

export const runPodSandboxRequest = message("runtime.v1.RunPodSandboxRequest", {
  config: optional(1, podSandboxConfig),
  runtimeHandler: optional(2, string),
});
export type RunPodSandboxRequest = Infer<typeof runPodSandboxRequest>;

export const runPodSandboxResponse = message("runtime.v1.RunPodSandboxResponse", {
  podSandboxId: optional(1, string),
});
export type RunPodSandboxResponse = Infer<typeof runPodSandboxResponse>;

export const stopPodSandboxRequest = message("runtime.v1.StopPodSandboxRequest", {
  podSandboxId: optional(1, string),
});
export type StopPodSandboxRequest = Infer<typeof stopPodSandboxRequest>;

export const stopPodSandboxResponse = message("runtime.v1.StopPodSandboxResponse", {});
export type StopPodSandboxResponse = Infer<typeof stopPodSandboxResponse>;

export const removePodSandboxRequest = message("runtime.v1.RemovePodSandboxRequest", {
  podSandboxId: optional(1, string),
});
export type RemovePodSandboxRequest = Infer<typeof removePodSandboxRequest>;

export const removePodSandboxResponse = message("runtime.v1.RemovePodSandboxResponse", {});
export type RemovePodSandboxResponse = Infer<typeof removePodSandboxResponse>;

export const podSandboxStatusRequest = message("runtime.v1.PodSandboxStatusRequest", {
  podSandboxId: optional(1, string),
  verbose: optional(2, boolean),
});
export type PodSandboxStatusRequest = Infer<typeof podSandboxStatusRequest>;

export const podSandboxNetworkStatus = message("runtime.v1.PodSandboxNetworkStatus", {
  ip: optional(1, string),
  additionalIps: optional(2, list(podIP)),
});
export type PodSandboxNetworkStatus = Infer<typeof podSandboxNetworkStatus>;

export const linuxPodSandboxStatus = message("runtime.v1.LinuxPodSandboxStatus", {
  namespaces: optional(1, namespace),
});
export type LinuxPodSandboxStatus = Infer<typeof linuxPodSandboxStatus>;

export const podSandboxStatus = message("runtime.v1.PodSandboxStatus", {
  id: optional(1, string),
  metadata: optional(2, podSandboxMetadata),
  state: optional(3, podSandboxState),
  createdAt: optional(4, bigInt64),
  network: optional(5, podSandboxNetworkStatus),
  linux: optional(6, linuxPodSandboxStatus),
  labels: optional(7, map(string)),
  annotations: optional(8, map(string)),
  runtimeHandler: optional(9, string),
});
export type PodSandboxStatus = Infer<typeof podSandboxStatus>;

export const podSandboxStatusResponse = message("runtime.v1.PodSandboxStatusResponse", {
  status: optional(1, podSandboxStatus),
  info: optional(2, map(string)),
  containersStatuses: optional(3, list(containerStatus)),
  timestamp: optional(4, bigInt64),
});
export type PodSandboxStatusResponse = Infer<typeof podSandboxStatusResponse>;

export const podSandboxStateValue = message("runtime.v1.PodSandboxStateValue", {
  state: optional(1, podSandboxState),
});
export type PodSandboxStateValue = Infer<typeof podSandboxStateValue>;

export const podSandboxFilter = message("runtime.v1.PodSandboxFilter", {
  id: optional(1, string),
  state: optional(2, podSandboxStateValue),
  labelSelector: optional(3, map(string)),
});
export type PodSandboxFilter = Infer<typeof podSandboxFilter>;

export const listPodSandboxRequest = message("runtime.v1.ListPodSandboxRequest", {
  filter: optional(1, podSandboxFilter),
});
export type ListPodSandboxRequest = Infer<typeof listPodSandboxRequest>;

export const podSandbox = message("runtime.v1.PodSandbox", {
  id: optional(1, string),
  metadata: optional(2, podSandboxMetadata),
  state: optional(3, podSandboxState),
  createdAt: optional(4, bigInt64),
  labels: optional(5, map(string)),
  annotations: optional(6, map(string)),
  runtimeHandler: optional(7, string),
});
export type PodSandbox = Infer<typeof podSandbox>;

export const listPodSandboxResponse = message("runtime.v1.ListPodSandboxResponse", {
  items: optional(1, list(podSandbox)),
});
export type ListPodSandboxResponse = Infer<typeof listPodSandboxResponse>;

export const podSandboxAttributes = message("runtime.v1.PodSandboxAttributes", {
  id: optional(1, string),
  metadata: optional(2, podSandboxMetadata),
  labels: optional(3, map(string)),
  annotations: optional(4, map(string)),
});
export type PodSandboxAttributes = Infer<typeof podSandboxAttributes>;

export const updatePodSandboxResourcesRequest = message("runtime.v1.UpdatePodSandboxResourcesRequest", {
  podSandboxId: optional(1, string),
  overhead: optional(2, linuxContainerResources),
  resources: optional(3, linuxContainerResources),
});
export type UpdatePodSandboxResourcesRequest = Infer<typeof updatePodSandboxResourcesRequest>;

export const updatePodSandboxResourcesResponse = message("runtime.v1.UpdatePodSandboxResourcesResponse", {});
export type UpdatePodSandboxResourcesResponse = Infer<typeof updatePodSandboxResourcesResponse>;
