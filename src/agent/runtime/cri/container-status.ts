import { bigInt64, int32, list, map, message, optional, string, uint32 } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { containerState, signal } from "./enums.ts";
import { imageSpec } from "./image-spec.ts";
import { containerUser, linuxContainerResources, mount } from "./shared.ts";
import { windowsContainerResources } from "./windows.ts";

export const containerMetadata = message("runtime.v1.ContainerMetadata", {
  name: optional(1, string),
  attempt: optional(2, uint32),
});
export type ContainerMetadata = Infer<typeof containerMetadata>;

export const containerResources = message("runtime.v1.ContainerResources", {
  linux: optional(1, linuxContainerResources),
  windows: optional(2, windowsContainerResources),
});
export type ContainerResources = Infer<typeof containerResources>;

export const containerStatus = message("runtime.v1.ContainerStatus", {
  id: optional(1, string),
  metadata: optional(2, containerMetadata),
  state: optional(3, containerState),
  createdAt: optional(4, bigInt64),
  startedAt: optional(5, bigInt64),
  finishedAt: optional(6, bigInt64),
  exitCode: optional(7, int32),
  image: optional(8, imageSpec),
  imageRef: optional(9, string),
  reason: optional(10, string),
  message: optional(11, string),
  labels: optional(12, map(string)),
  annotations: optional(13, map(string)),
  mounts: optional(14, list(mount)),
  logPath: optional(15, string),
  resources: optional(16, containerResources),
  imageId: optional(17, string),
  user: optional(18, containerUser),
  stopSignal: optional(19, signal),
});
export type ContainerStatus = Infer<typeof containerStatus>;
