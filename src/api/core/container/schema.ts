import {
  boolean,
  documentedEnum,
  inline,
  int32,
  list,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectFieldSelector, resourceFieldSelector } from "../references/field-selectors.ts";
import { configMapKeySelector, secretKeySelector } from "../references/key-selectors.ts";
import { localObjectReference } from "../references/object-reference.ts";
import { resourceRequirements } from "../resources/schema.ts";
import { lifecycle, probe } from "./probe.ts";
import { securityContext } from "./security-context.ts";

export const containerPort = object("core/v1.ContainerPort", {
  name: optional(1, string),
  hostPort: optional(2, int32),
  containerPort: required(3, int32),
  protocol: optional(4, named("v1.Protocol", documentedEnum("TCP", "UDP", "SCTP")), { default: "TCP" }),
  hostIP: optional(5, string),
});
export type ContainerPort = Infer<typeof containerPort>;

export const envVarSource = object("core/v1.EnvVarSource", {
  fieldRef: pointer(1, objectFieldSelector),
  resourceFieldRef: pointer(2, resourceFieldSelector),
  configMapKeyRef: pointer(3, configMapKeySelector),
  secretKeyRef: pointer(4, secretKeySelector),
});
export type EnvVarSource = Infer<typeof envVarSource>;

export const envVar = object("core/v1.EnvVar", {
  name: required(1, string),
  value: optional(2, string),
  valueFrom: pointer(3, envVarSource),
});
export type EnvVar = Infer<typeof envVar>;

export const configMapEnvSource = object("core/v1.ConfigMapEnvSource", {
  localObjectReference: inline(1, localObjectReference),
  optional: pointer(2, boolean),
});
export type ConfigMapEnvSource = Infer<typeof configMapEnvSource>;

export const secretEnvSource = object("core/v1.SecretEnvSource", {
  localObjectReference: inline(1, localObjectReference),
  optional: pointer(2, boolean),
});
export type SecretEnvSource = Infer<typeof secretEnvSource>;

export const envFromSource = object("core/v1.EnvFromSource", {
  prefix: optional(1, string),
  configMapRef: pointer(2, configMapEnvSource),
  secretRef: pointer(3, secretEnvSource),
});
export type EnvFromSource = Infer<typeof envFromSource>;

export const volumeMount = object("core/v1.VolumeMount", {
  name: required(1, string),
  readOnly: optional(2, boolean),
  recursiveReadOnly: pointer(7, named("v1.RecursiveReadOnlyMode", string), {
    featureGate: "RecursiveReadOnlyMounts",
  }),
  mountPath: required(3, string),
  subPath: optional(4, string),
  mountPropagation: pointer(
    5,
    named("v1.MountPropagationMode", documentedEnum("None", "HostToContainer", "Bidirectional")),
  ),
  subPathExpr: optional(6, string),
});
export type VolumeMount = Infer<typeof volumeMount>;

export const volumeDevice = object("core/v1.VolumeDevice", {
  name: required(1, string),
  devicePath: required(2, string),
});
export type VolumeDevice = Infer<typeof volumeDevice>;

export const containerResizePolicy = object("core/v1.ContainerResizePolicy", {
  resourceName: required(1, named("v1.ResourceName", string)),
  restartPolicy: required(2, named("v1.ResourceResizeRestartPolicy", string)),
});
export type ContainerResizePolicy = Infer<typeof containerResizePolicy>;

export const container = object("core/v1.Container", {
  name: required(1, string),
  image: optional(2, string),
  command: optional(3, list(string)),
  args: optional(4, list(string)),
  workingDir: optional(5, string),
  ports: optional(6, listMap(containerPort, "containerPort", "protocol"), {
    patchStrategy: "merge",
    patchMergeKey: "containerPort",
  }),
  envFrom: optional(19, list(envFromSource)),
  env: optional(7, listMap(envVar, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  resources: optional(8, resourceRequirements),
  resizePolicy: optional(23, list(containerResizePolicy), {
    featureGate: "InPlacePodVerticalScaling",
  }),
  restartPolicy: pointer(24, named("v1.ContainerRestartPolicy", string), { featureGate: "SidecarContainers" }),
  volumeMounts: optional(9, listMap(volumeMount, "mountPath"), {
    patchStrategy: "merge",
    patchMergeKey: "mountPath",
  }),
  volumeDevices: optional(21, listMap(volumeDevice, "devicePath"), {
    patchStrategy: "merge",
    patchMergeKey: "devicePath",
  }),
  livenessProbe: pointer(10, probe),
  readinessProbe: pointer(11, probe),
  startupProbe: pointer(22, probe),
  lifecycle: pointer(12, lifecycle),
  terminationMessagePath: optional(13, string),
  terminationMessagePolicy: optional(
    20,
    named("v1.TerminationMessagePolicy", documentedEnum("File", "FallbackToLogsOnError")),
  ),
  imagePullPolicy: optional(14, named("v1.PullPolicy", documentedEnum("Always", "Never", "IfNotPresent"))),
  securityContext: pointer(15, securityContext),
  stdin: optional(16, boolean),
  stdinOnce: optional(17, boolean),
  tty: optional(18, boolean),
});
export type Container = Infer<typeof container>;

export const ephemeralContainerCommon = object("core/v1.EphemeralContainerCommon", {
  name: required(1, string),
  image: optional(2, string),
  command: optional(3, list(string)),
  args: optional(4, list(string)),
  workingDir: optional(5, string),
  ports: optional(6, listMap(containerPort, "containerPort", "protocol"), {
    patchStrategy: "merge",
    patchMergeKey: "containerPort",
  }),
  envFrom: optional(19, list(envFromSource)),
  env: optional(7, listMap(envVar, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  resources: optional(8, resourceRequirements),
  resizePolicy: optional(23, list(containerResizePolicy), {
    featureGate: "InPlacePodVerticalScaling",
  }),
  restartPolicy: pointer(24, named("v1.ContainerRestartPolicy", string), { featureGate: "SidecarContainers" }),
  volumeMounts: optional(9, listMap(volumeMount, "mountPath"), {
    patchStrategy: "merge",
    patchMergeKey: "mountPath",
  }),
  volumeDevices: optional(21, listMap(volumeDevice, "devicePath"), {
    patchStrategy: "merge",
    patchMergeKey: "devicePath",
  }),
  livenessProbe: pointer(10, probe),
  readinessProbe: pointer(11, probe),
  startupProbe: pointer(22, probe),
  lifecycle: pointer(12, lifecycle),
  terminationMessagePath: optional(13, string),
  terminationMessagePolicy: optional(
    20,
    named("v1.TerminationMessagePolicy", documentedEnum("File", "FallbackToLogsOnError")),
  ),
  imagePullPolicy: optional(14, named("v1.PullPolicy", documentedEnum("Always", "Never", "IfNotPresent"))),
  securityContext: pointer(15, securityContext),
  stdin: optional(16, boolean),
  stdinOnce: optional(17, boolean),
  tty: optional(18, boolean),
});
export type EphemeralContainerCommon = Infer<typeof ephemeralContainerCommon>;

export const ephemeralContainer = object("core/v1.EphemeralContainer", {
  ephemeralContainerCommon: inline(1, ephemeralContainerCommon),
  targetContainerName: optional(2, string),
});
export type EphemeralContainer = Infer<typeof ephemeralContainer>;
