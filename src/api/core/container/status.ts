import {
  boolean,
  int32,
  int64,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { resourceList, resourceRequirements } from "../resources/schema.ts";
import { signal } from "./signal.ts";

export const containerStateWaiting = object("core/v1.ContainerStateWaiting", {
  reason: optional(1, string),
  message: optional(2, string),
});
export type ContainerStateWaiting = Infer<typeof containerStateWaiting>;

export const containerStateRunning = object("core/v1.ContainerStateRunning", {
  startedAt: optional(1, time),
});
export type ContainerStateRunning = Infer<typeof containerStateRunning>;

export const containerStateTerminated = object("core/v1.ContainerStateTerminated", {
  exitCode: required(1, int32),
  signal: optional(2, int32),
  reason: optional(3, string),
  message: optional(4, string),
  startedAt: optional(5, time),
  finishedAt: optional(6, time),
  containerID: optional(7, string),
});
export type ContainerStateTerminated = Infer<typeof containerStateTerminated>;

export const containerState = object("core/v1.ContainerState", {
  waiting: pointer(1, containerStateWaiting),
  running: pointer(2, containerStateRunning),
  terminated: pointer(3, containerStateTerminated),
});
export type ContainerState = Infer<typeof containerState>;

export const volumeMountStatus = object("core/v1.VolumeMountStatus", {
  name: required(1, string),
  mountPath: required(2, string),
  readOnly: optional(3, boolean),
  recursiveReadOnly: pointer(4, named("v1.RecursiveReadOnlyMode", string), {
    featureGate: "RecursiveReadOnlyMounts",
  }),
});
export type VolumeMountStatus = Infer<typeof volumeMountStatus>;

export const linuxContainerUser = object("core/v1.LinuxContainerUser", {
  uid: required(1, int64),
  gid: required(2, int64),
  supplementalGroups: optional(3, list(int64)),
});
export type LinuxContainerUser = Infer<typeof linuxContainerUser>;

export const containerUser = object("core/v1.ContainerUser", {
  linux: pointer(1, linuxContainerUser),
});
export type ContainerUser = Infer<typeof containerUser>;

export const resourceHealth = object("core/v1.ResourceHealth", {
  resourceID: required(1, named("v1.ResourceID", string)),
  health: optional(2, named("v1.ResourceHealthStatus", string)),
});
export type ResourceHealth = Infer<typeof resourceHealth>;

export const resourceStatus = object("core/v1.ResourceStatus", {
  name: required(1, named("v1.ResourceName", string)),
  resources: optional(2, listMap(resourceHealth, "resourceID")),
});
export type ResourceStatus = Infer<typeof resourceStatus>;

export const containerStatus = object("core/v1.ContainerStatus", {
  name: required(1, string),
  state: optional(2, containerState),
  lastState: optional(3, containerState),
  ready: required(4, boolean),
  restartCount: required(5, int32),
  image: required(6, string),
  imageID: required(7, string),
  containerID: optional(8, string),
  started: pointer(9, boolean),
  allocatedResources: optional(10, resourceList, {
    featureGate: "InPlacePodVerticalScalingAllocatedStatus",
  }),
  resources: pointer(11, resourceRequirements, {
    featureGate: "InPlacePodVerticalScaling",
  }),
  volumeMounts: optional(12, listMap(volumeMountStatus, "mountPath"), {
    patchStrategy: "merge",
    patchMergeKey: "mountPath",
    featureGate: "RecursiveReadOnlyMounts",
  }),
  user: pointer(13, containerUser, { featureGate: "SupplementalGroupsPolicy" }),
  allocatedResourcesStatus: optional(14, listMap(resourceStatus, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
    featureGate: "ResourceHealthStatus",
  }),
  stopSignal: pointer(15, named("v1.Signal", signal), { featureGate: "ContainerStopSignals" }),
});
export type ContainerStatus = Infer<typeof containerStatus>;
