import { boolean, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { cgroupDriver } from "./enums.ts";
import { namespaceOption } from "./shared.ts";

export const versionRequest = message("runtime.v1.VersionRequest", {
  version: optional(1, string),
});
export type VersionRequest = Infer<typeof versionRequest>;

export const versionResponse = message("runtime.v1.VersionResponse", {
  version: optional(1, string),
  runtimeName: optional(2, string),
  runtimeVersion: optional(3, string),
  runtimeApiVersion: optional(4, string),
});
export type VersionResponse = Infer<typeof versionResponse>;

export const podIP = message("runtime.v1.PodIP", {
  ip: optional(1, string),
});
export type PodIP = Infer<typeof podIP>;

export const namespace = message("runtime.v1.Namespace", {
  options: optional(2, namespaceOption),
});
export type Namespace = Infer<typeof namespace>;

export const networkConfig = message("runtime.v1.NetworkConfig", {
  podCidr: optional(1, string),
});
export type NetworkConfig = Infer<typeof networkConfig>;

export const runtimeConfig = message("runtime.v1.RuntimeConfig", {
  networkConfig: optional(1, networkConfig),
});
export type RuntimeConfig = Infer<typeof runtimeConfig>;

export const updateRuntimeConfigRequest = message("runtime.v1.UpdateRuntimeConfigRequest", {
  runtimeConfig: optional(1, runtimeConfig),
});
export type UpdateRuntimeConfigRequest = Infer<typeof updateRuntimeConfigRequest>;

export const updateRuntimeConfigResponse = message("runtime.v1.UpdateRuntimeConfigResponse", {});
export type UpdateRuntimeConfigResponse = Infer<typeof updateRuntimeConfigResponse>;

export const runtimeCondition = message("runtime.v1.RuntimeCondition", {
  type: optional(1, string),
  status: optional(2, boolean),
  reason: optional(3, string),
  message: optional(4, string),
});
export type RuntimeCondition = Infer<typeof runtimeCondition>;

export const runtimeStatus = message("runtime.v1.RuntimeStatus", {
  conditions: optional(1, list(runtimeCondition)),
});
export type RuntimeStatus = Infer<typeof runtimeStatus>;

export const statusRequest = message("runtime.v1.StatusRequest", {
  verbose: optional(1, boolean),
});
export type StatusRequest = Infer<typeof statusRequest>;

export const runtimeHandlerFeatures = message("runtime.v1.RuntimeHandlerFeatures", {
  recursiveReadOnlyMounts: optional(1, boolean),
  userNamespaces: optional(2, boolean),
});
export type RuntimeHandlerFeatures = Infer<typeof runtimeHandlerFeatures>;

export const runtimeHandler = message("runtime.v1.RuntimeHandler", {
  name: optional(1, string),
  features: optional(2, runtimeHandlerFeatures),
});
export type RuntimeHandler = Infer<typeof runtimeHandler>;

export const runtimeFeatures = message("runtime.v1.RuntimeFeatures", {
  supplementalGroupsPolicy: optional(1, boolean),
});
export type RuntimeFeatures = Infer<typeof runtimeFeatures>;

export const statusResponse = message("runtime.v1.StatusResponse", {
  status: optional(1, runtimeStatus),
  info: optional(2, map(string)),
  runtimeHandlers: optional(3, list(runtimeHandler)),
  features: optional(4, runtimeFeatures),
});
export type StatusResponse = Infer<typeof statusResponse>;

export const runtimeConfigRequest = message("runtime.v1.RuntimeConfigRequest", {});
export type RuntimeConfigRequest = Infer<typeof runtimeConfigRequest>;

export const linuxRuntimeConfiguration = message("runtime.v1.LinuxRuntimeConfiguration", {
  cgroupDriver: optional(1, cgroupDriver),
});
export type LinuxRuntimeConfiguration = Infer<typeof linuxRuntimeConfiguration>;

export const runtimeConfigResponse = message("runtime.v1.RuntimeConfigResponse", {
  linux: optional(1, linuxRuntimeConfiguration),
});
export type RuntimeConfigResponse = Infer<typeof runtimeConfigResponse>;
