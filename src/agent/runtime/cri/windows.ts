import { bigInt64, bigUint64, boolean, list, message, optional, string, uint32 } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { namespaceMode } from "./enums.ts";

export const windowsNamespaceOption = message("runtime.v1.WindowsNamespaceOption", {
  network: optional(1, namespaceMode),
});
export type WindowsNamespaceOption = Infer<typeof windowsNamespaceOption>;

export const windowsSandboxSecurityContext = message("runtime.v1.WindowsSandboxSecurityContext", {
  runAsUsername: optional(1, string),
  credentialSpec: optional(2, string),
  hostProcess: optional(3, boolean),
  namespaceOptions: optional(4, windowsNamespaceOption),
});
export type WindowsSandboxSecurityContext = Infer<typeof windowsSandboxSecurityContext>;

export const windowsPodSandboxConfig = message("runtime.v1.WindowsPodSandboxConfig", {
  securityContext: optional(1, windowsSandboxSecurityContext),
});
export type WindowsPodSandboxConfig = Infer<typeof windowsPodSandboxConfig>;

export const windowsCpuGroupAffinity = message("runtime.v1.WindowsCpuGroupAffinity", {
  cpuMask: optional(1, bigUint64),
  cpuGroup: optional(2, uint32),
});
export type WindowsCpuGroupAffinity = Infer<typeof windowsCpuGroupAffinity>;

export const windowsContainerResources = message("runtime.v1.WindowsContainerResources", {
  cpuShares: optional(1, bigInt64),
  cpuCount: optional(2, bigInt64),
  cpuMaximum: optional(3, bigInt64),
  memoryLimitInBytes: optional(4, bigInt64),
  rootfsSizeInBytes: optional(5, bigInt64),
  affinityCpus: optional(6, list(windowsCpuGroupAffinity)),
});
export type WindowsContainerResources = Infer<typeof windowsContainerResources>;

export const windowsContainerSecurityContext = message("runtime.v1.WindowsContainerSecurityContext", {
  runAsUsername: optional(1, string),
  credentialSpec: optional(2, string),
  hostProcess: optional(3, boolean),
});
export type WindowsContainerSecurityContext = Infer<typeof windowsContainerSecurityContext>;

export const windowsContainerConfig = message("runtime.v1.WindowsContainerConfig", {
  resources: optional(1, windowsContainerResources),
  securityContext: optional(2, windowsContainerSecurityContext),
});
export type WindowsContainerConfig = Infer<typeof windowsContainerConfig>;
