import {
  bigInt64,
  bigUint64,
  boolean,
  int32,
  list,
  map,
  message,
  optional,
  string,
  uint32,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { mountPropagation, namespaceMode, profileType, protocol } from "./enums.ts";
import { imageSpec } from "./image-spec.ts";

export const dnsConfig = message("runtime.v1.DNSConfig", {
  servers: optional(1, list(string)),
  searches: optional(2, list(string)),
  options: optional(3, list(string)),
});
export type DNSConfig = Infer<typeof dnsConfig>;

export const portMapping = message("runtime.v1.PortMapping", {
  protocol: optional(1, protocol),
  containerPort: optional(2, int32),
  hostPort: optional(3, int32),
  hostIp: optional(4, string),
});
export type PortMapping = Infer<typeof portMapping>;

export const idMapping = message("runtime.v1.IDMapping", {
  hostId: optional(1, uint32),
  containerId: optional(2, uint32),
  length: optional(3, uint32),
});
export type IDMapping = Infer<typeof idMapping>;

export const mount = message("runtime.v1.Mount", {
  containerPath: optional(1, string),
  hostPath: optional(2, string),
  readonly: optional(3, boolean),
  selinuxRelabel: optional(4, boolean),
  propagation: optional(5, mountPropagation),
  uidMappings: optional(6, list(idMapping)),
  gidMappings: optional(7, list(idMapping)),
  recursiveReadOnly: optional(8, boolean),
  image: optional(9, imageSpec),
  imageSubPath: optional(10, string),
});
export type Mount = Infer<typeof mount>;

export const userNamespace = message("runtime.v1.UserNamespace", {
  mode: optional(1, namespaceMode),
  uids: optional(2, list(idMapping)),
  gids: optional(3, list(idMapping)),
});
export type UserNamespace = Infer<typeof userNamespace>;

export const namespaceOption = message("runtime.v1.NamespaceOption", {
  network: optional(1, namespaceMode),
  pid: optional(2, namespaceMode),
  ipc: optional(3, namespaceMode),
  targetId: optional(4, string),
  usernsOptions: optional(5, userNamespace),
});
export type NamespaceOption = Infer<typeof namespaceOption>;

export const int64Value = message("runtime.v1.Int64Value", {
  value: optional(1, bigInt64),
});
export type Int64Value = Infer<typeof int64Value>;

export const seLinuxOption = message("runtime.v1.SELinuxOption", {
  user: optional(1, string),
  role: optional(2, string),
  type: optional(3, string),
  level: optional(4, string),
});
export type SELinuxOption = Infer<typeof seLinuxOption>;

export const securityProfile = message("runtime.v1.SecurityProfile", {
  profileType: optional(1, profileType),
  localhostRef: optional(2, string),
});
export type SecurityProfile = Infer<typeof securityProfile>;

export const hugepageLimit = message("runtime.v1.HugepageLimit", {
  pageSize: optional(1, string),
  limit: optional(2, bigUint64),
});
export type HugepageLimit = Infer<typeof hugepageLimit>;

export const linuxContainerResources = message("runtime.v1.LinuxContainerResources", {
  cpuPeriod: optional(1, bigInt64),
  cpuQuota: optional(2, bigInt64),
  cpuShares: optional(3, bigInt64),
  memoryLimitInBytes: optional(4, bigInt64),
  oomScoreAdj: optional(5, bigInt64),
  cpusetCpus: optional(6, string),
  cpusetMems: optional(7, string),
  hugepageLimits: optional(8, list(hugepageLimit)),
  unified: optional(9, map(string)),
  memorySwapLimitInBytes: optional(10, bigInt64),
});
export type LinuxContainerResources = Infer<typeof linuxContainerResources>;

export const linuxContainerUser = message("runtime.v1.LinuxContainerUser", {
  uid: optional(1, bigInt64),
  gid: optional(2, bigInt64),
  supplementalGroups: optional(3, list(bigInt64)),
});
export type LinuxContainerUser = Infer<typeof linuxContainerUser>;

export const containerUser = message("runtime.v1.ContainerUser", {
  linux: optional(1, linuxContainerUser),
});
export type ContainerUser = Infer<typeof containerUser>;

export const keyValue = message("runtime.v1.KeyValue", {
  key: optional(1, string),
  value: optional(2, string),
});
export type KeyValue = Infer<typeof keyValue>;

export const capability = message("runtime.v1.Capability", {
  addCapabilities: optional(1, list(string)),
  dropCapabilities: optional(2, list(string)),
  addAmbientCapabilities: optional(3, list(string)),
});
export type Capability = Infer<typeof capability>;

export const device = message("runtime.v1.Device", {
  containerPath: optional(1, string),
  hostPath: optional(2, string),
  permissions: optional(3, string),
});
export type Device = Infer<typeof device>;

export const cdiDevice = message("runtime.v1.CDIDevice", {
  name: optional(1, string),
});
export type CDIDevice = Infer<typeof cdiDevice>;

export const uInt64Value = message("runtime.v1.UInt64Value", {
  value: optional(1, bigUint64),
});
export type UInt64Value = Infer<typeof uInt64Value>;
