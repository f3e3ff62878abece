import { bigInt64, binary, boolean, int32, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { containerMetadata, containerStatus } from "./container-status.ts";
import { containerEventType, containerState, signal, supplementalGroupsPolicy } from "./enums.ts";
import { imageSpec } from "./image-spec.ts";
import { podSandboxConfig, podSandboxStatus } from "./sandbox.ts";
import {
  capability,
  cdiDevice,
  device,
  int64Value,
  keyValue,
  linuxContainerResources,
  mount,
  namespaceOption,
  securityProfile,
  seLinuxOption,
} from "./shared.ts";
import { windowsContainerConfig, windowsContainerResources } from "./windows.ts";

export const containerAttributes = message("runtime.v1.ContainerAttributes", {
  id: optional(1, string),
  metadata: optional(2, containerMetadata),
  labels: optional(3, map(string)),
  annotations: optional(4, map(string)),
});
export type ContainerAttributes = Infer<typeof containerAttributes>;

export const linuxContainerSecurityContext = message("runtime.v1.LinuxContainerSecurityContext", {
  capabilities: optional(1, capability),
  privileged: optional(2, boolean),
  namespaceOptions: optional(3, namespaceOption),
  selinuxOptions: optional(4, seLinuxOption),
  runAsUser: optional(5, int64Value),
  runAsGroup: optional(12, int64Value),
  runAsUsername: optional(6, string),
  readonlyRootfs: optional(7, boolean),
  supplementalGroups: optional(8, list(bigInt64)),
  supplementalGroupsPolicy: optional(17, supplementalGroupsPolicy),
  noNewPrivs: optional(11, boolean),
  maskedPaths: optional(13, list(string)),
  readonlyPaths: optional(14, list(string)),
  seccomp: optional(15, securityProfile),
  apparmor: optional(16, securityProfile),
  apparmorProfile: optional(9, string),
  seccompProfilePath: optional(10, string),
});
export type LinuxContainerSecurityContext = Infer<typeof linuxContainerSecurityContext>;

export const linuxContainerConfig = message("runtime.v1.LinuxContainerConfig", {
  resources: optional(1, linuxContainerResources),
  securityContext: optional(2, linuxContainerSecurityContext),
});
export type LinuxContainerConfig = Infer<typeof linuxContainerConfig>;

export const containerConfig = message("runtime.v1.ContainerConfig", {
  metadata: optional(1, containerMetadata),
  image: optional(2, imageSpec),
  command: optional(3, list(string)),
  args: optional(4, list(string)),
  workingDir: optional(5, string),
  envs: optional(6, list(keyValue)),
  mounts: optional(7, list(mount)),
  devices: optional(8, list(device)),
  labels: optional(9, map(string)),
  annotations: optional(10, map(string)),
  logPath: optional(11, string),
  stdin: optional(12, boolean),
  stdinOnce: optional(13, boolean),
  tty: optional(14, boolean),
  linux: optional(15, linuxContainerConfig),
  windows: optional(16, windowsContainerConfig),
  CDIDevices: optional(17, list(cdiDevice)),
  stopSignal: optional(18, signal),
});
export type ContainerConfig = Infer<typeof containerConfig>;

export const createContainerRequest = message("runtime.v1.CreateContainerRequest", {
  podSandboxId: optional(1, string),
  config: optional(2, containerConfig),
  sandboxConfig: optional(3, podSandboxConfig),
});
export type CreateContainerRequest = Infer<typeof createContainerRequest>;

export const createContainerResponse = message("runtime.v1.CreateContainerResponse", {
  containerId: optional(1, string),
});
export type CreateContainerResponse = Infer<typeof createContainerResponse>;

export const startContainerRequest = message("runtime.v1.StartContainerRequest", {
  containerId: optional(1, string),
});
export type StartContainerRequest = Infer<typeof startContainerRequest>;

export const startContainerResponse = message("runtime.v1.StartContainerResponse", {});
export type StartContainerResponse = Infer<typeof startContainerResponse>;

export const stopContainerRequest = message("runtime.v1.StopContainerRequest", {
  containerId: optional(1, string),
  timeout: optional(2, bigInt64),
});
export type StopContainerRequest = Infer<typeof stopContainerRequest>;

export const stopContainerResponse = message("runtime.v1.StopContainerResponse", {});
export type StopContainerResponse = Infer<typeof stopContainerResponse>;

export const removeContainerRequest = message("runtime.v1.RemoveContainerRequest", {
  containerId: optional(1, string),
});
export type RemoveContainerRequest = Infer<typeof removeContainerRequest>;

export const removeContainerResponse = message("runtime.v1.RemoveContainerResponse", {});
export type RemoveContainerResponse = Infer<typeof removeContainerResponse>;

export const containerStateValue = message("runtime.v1.ContainerStateValue", {
  state: optional(1, containerState),
});
export type ContainerStateValue = Infer<typeof containerStateValue>;

export const containerFilter = message("runtime.v1.ContainerFilter", {
  id: optional(1, string),
  state: optional(2, containerStateValue),
  podSandboxId: optional(3, string),
  labelSelector: optional(4, map(string)),
});
export type ContainerFilter = Infer<typeof containerFilter>;

export const listContainersRequest = message("runtime.v1.ListContainersRequest", {
  filter: optional(1, containerFilter),
});
export type ListContainersRequest = Infer<typeof listContainersRequest>;

export const container = message("runtime.v1.Container", {
  id: optional(1, string),
  podSandboxId: optional(2, string),
  metadata: optional(3, containerMetadata),
  image: optional(4, imageSpec),
  imageRef: optional(5, string),
  state: optional(6, containerState),
  createdAt: optional(7, bigInt64),
  labels: optional(8, map(string)),
  annotations: optional(9, map(string)),
  imageId: optional(10, string),
});
export type Container = Infer<typeof container>;

export const listContainersResponse = message("runtime.v1.ListContainersResponse", {
  containers: optional(1, list(container)),
});
export type ListContainersResponse = Infer<typeof listContainersResponse>;

export const containerStatusRequest = message("runtime.v1.ContainerStatusRequest", {
  containerId: optional(1, string),
  verbose: optional(2, boolean),
});
export type ContainerStatusRequest = Infer<typeof containerStatusRequest>;

export const containerStatusResponse = message("runtime.v1.ContainerStatusResponse", {
  status: optional(1, containerStatus),
  info: optional(2, map(string)),
});
export type ContainerStatusResponse = Infer<typeof containerStatusResponse>;

export const updateContainerResourcesRequest = message("runtime.v1.UpdateContainerResourcesRequest", {
  containerId: optional(1, string),
  linux: optional(2, linuxContainerResources),
  windows: optional(3, windowsContainerResources),
  annotations: optional(4, map(string)),
});
export type UpdateContainerResourcesRequest = Infer<typeof updateContainerResourcesRequest>;

export const updateContainerResourcesResponse = message("runtime.v1.UpdateContainerResourcesResponse", {});
export type UpdateContainerResourcesResponse = Infer<typeof updateContainerResourcesResponse>;

export const execSyncRequest = message("runtime.v1.ExecSyncRequest", {
  containerId: optional(1, string),
  cmd: optional(2, list(string)),
  timeout: optional(3, bigInt64),
});
export type ExecSyncRequest = Infer<typeof execSyncRequest>;

export const execSyncResponse = message("runtime.v1.ExecSyncResponse", {
  stdout: optional(1, binary),
  stderr: optional(2, binary),
  exitCode: optional(3, int32),
});
export type ExecSyncResponse = Infer<typeof execSyncResponse>;

export const execRequest = message("runtime.v1.ExecRequest", {
  containerId: optional(1, string),
  cmd: optional(2, list(string)),
  tty: optional(3, boolean),
  stdin: optional(4, boolean),
  stdout: optional(5, boolean),
  stderr: optional(6, boolean),
});
export type ExecRequest = Infer<typeof execRequest>;

export const execResponse = message("runtime.v1.ExecResponse", {
  url: optional(1, string),
});
export type ExecResponse = Infer<typeof execResponse>;

export const attachRequest = message("runtime.v1.AttachRequest", {
  containerId: optional(1, string),
  stdin: optional(2, boolean),
  tty: optional(3, boolean),
  stdout: optional(4, boolean),
  stderr: optional(5, boolean),
});
export type AttachRequest = Infer<typeof attachRequest>;

export const attachResponse = message("runtime.v1.AttachResponse", {
  url: optional(1, string),
});
export type AttachResponse = Infer<typeof attachResponse>;

export const portForwardRequest = message("runtime.v1.PortForwardRequest", {
  podSandboxId: optional(1, string),
  port: optional(2, list(int32)),
});
export type PortForwardRequest = Infer<typeof portForwardRequest>;

export const portForwardResponse = message("runtime.v1.PortForwardResponse", {
  url: optional(1, string),
});
export type PortForwardResponse = Infer<typeof portForwardResponse>;

export const reopenContainerLogRequest = message("runtime.v1.ReopenContainerLogRequest", {
  containerId: optional(1, string),
});
export type ReopenContainerLogRequest = Infer<typeof reopenContainerLogRequest>;

export const reopenContainerLogResponse = message("runtime.v1.ReopenContainerLogResponse", {});
export type ReopenContainerLogResponse = Infer<typeof reopenContainerLogResponse>;

export const checkpointContainerRequest = message("runtime.v1.CheckpointContainerRequest", {
  containerId: optional(1, string),
  location: optional(2, string),
  timeout: optional(3, bigInt64),
});
export type CheckpointContainerRequest = Infer<typeof checkpointContainerRequest>;

export const checkpointContainerResponse = message("runtime.v1.CheckpointContainerResponse", {});
export type CheckpointContainerResponse = Infer<typeof checkpointContainerResponse>;

export const getEventsRequest = message("runtime.v1.GetEventsRequest", {});
export type GetEventsRequest = Infer<typeof getEventsRequest>;

export const containerEventResponse = message("runtime.v1.ContainerEventResponse", {
  containerId: optional(1, string),
  containerEventType: optional(2, containerEventType),
  createdAt: optional(3, bigInt64),
  podSandboxStatus: optional(4, podSandboxStatus),
  containersStatuses: optional(5, list(containerStatus)),
});
export type ContainerEventResponse = Infer<typeof containerEventResponse>;
