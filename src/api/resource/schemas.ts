/** The types of `resource.k8s.io/v1beta2`, which the server stores, and those that all versions share. */
import {
  boolean,
  documentedEnum,
  inline,
  int64,
  list,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  quantity,
  rawExtension,
  required,
  string,
  time,
} from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { nodeSelector } from "../core/node/selector.ts";
import { condition } from "../meta/condition.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";

/** The types with the same fields in all versions. `subRequestTolerations` is a protobuf number. */
export function createCommonTypes(version: string, subRequestTolerations: number) {
  const define = (name: string): string => `resource/${version}.${name}`;
  const taintEffect = named(`${version}.DeviceTaintEffect`, documentedEnum("NoSchedule", "NoExecute"));
  const tolerationOperator = named(`${version}.DeviceTolerationOperator`, documentedEnum("Exists", "Equal"));
  const allocationMode = named(`${version}.DeviceAllocationMode`, string);
  const resourcePool = object(define("ResourcePool"), {
    name: required(1, string),
    generation: required(2, int64),
    resourceSliceCount: required(3, int64),
  });
  const deviceAttribute = object(define("DeviceAttribute"), {
    int: pointer(2, int64),
    bool: pointer(3, boolean),
    string: pointer(4, string),
    version: pointer(5, string),
  });
  const deviceTaint = object(define("DeviceTaint"), {
    key: required(1, string),
    value: optional(2, string),
    effect: required(3, taintEffect),
    timeAdded: pointer(4, time),
  });
  const deviceToleration = object(define("DeviceToleration"), {
    key: optional(1, string),
    operator: optional(2, tolerationOperator, { default: "Equal" }),
    value: optional(3, string),
    effect: optional(4, taintEffect),
    tolerationSeconds: pointer(5, int64),
  });
  const counter = object(define("Counter"), { value: required(1, quantity) });
  const counterSet = object(define("CounterSet"), {
    name: required(1, string),
    counters: optional(2, map(counter), { requiredInOpenApi: true }),
  });
  const deviceCounterConsumption = object(define("DeviceCounterConsumption"), {
    counterSet: required(1, string),
    counters: optional(2, map(counter), { requiredInOpenApi: true }),
  });
  const celDeviceSelector = object(define("CELDeviceSelector"), { expression: required(1, string) });
  const deviceSelector = object(define("DeviceSelector"), { cel: pointer(1, celDeviceSelector) });
  const deviceSubRequest = object(define("DeviceSubRequest"), {
    name: required(1, string),
    deviceClassName: required(2, string),
    selectors: optional(3, list(deviceSelector)),
    allocationMode: optional(4, allocationMode),
    count: optional(5, int64),
    tolerations: optional(subRequestTolerations, list(deviceToleration), { featureGate: "DRADeviceTaints" }),
  });
  const deviceConstraint = object(define("DeviceConstraint"), {
    requests: optional(1, list(string)),
    matchAttribute: pointer(2, named(`${version}.FullyQualifiedName`, string)),
  });
  const opaqueDeviceConfiguration = object(define("OpaqueDeviceConfiguration"), {
    driver: required(1, string),
    parameters: required(2, rawExtension),
  });
  const deviceConfiguration = object(define("DeviceConfiguration"), { opaque: pointer(1, opaqueDeviceConfiguration) });
  const deviceClaimConfiguration = object(define("DeviceClaimConfiguration"), {
    requests: optional(1, list(string)),
    deviceConfiguration: inline(2, deviceConfiguration),
  });
  const deviceRequestAllocationResult = object(define("DeviceRequestAllocationResult"), {
    request: required(1, string),
    driver: required(2, string),
    pool: required(3, string),
    device: required(4, string),
    adminAccess: pointer(5, boolean, { featureGate: "DRAAdminAccess", emitEmpty: true }),
    tolerations: optional(6, list(deviceToleration), { featureGate: "DRADeviceTaints" }),
  });
  const deviceAllocationConfiguration = object(define("DeviceAllocationConfiguration"), {
    source: required(1, named(`${version}.AllocationConfigSource`, string)),
    requests: optional(2, list(string)),
    deviceConfiguration: inline(3, deviceConfiguration),
  });
  const deviceAllocationResult = object(define("DeviceAllocationResult"), {
    results: optional(1, list(deviceRequestAllocationResult)),
    config: optional(2, list(deviceAllocationConfiguration)),
  });
  const allocationResult = object(define("AllocationResult"), {
    devices: optional(1, deviceAllocationResult),
    nodeSelector: pointer(3, nodeSelector),
  });
  const consumerReference = object(define("ResourceClaimConsumerReference"), {
    apiGroup: optional(1, string),
    resource: required(3, string),
    name: required(4, string),
    uid: required(5, named("types.UID", string)),
  });
  const networkDeviceData = object(define("NetworkDeviceData"), {
    interfaceName: optional(1, string),
    ips: optional(2, list(string)),
    hardwareAddress: optional(3, string),
  });
  const allocatedDeviceStatus = object(define("AllocatedDeviceStatus"), {
    driver: required(1, string),
    pool: required(2, string),
    device: required(3, string),
    conditions: optional(4, listMap(condition, "type"), { emitEmpty: true }),
    data: pointer(5, rawExtension),
    networkData: pointer(6, networkDeviceData),
  });
  const resourceClaimStatus = object(define("ResourceClaimStatus"), {
    allocation: pointer(1, allocationResult),
    reservedFor: optional(2, listMap(consumerReference, "uid"), { patchStrategy: "merge", patchMergeKey: "uid" }),
    devices: optional(4, listMap(allocatedDeviceStatus, "driver", "device", "pool"), {
      featureGate: "DRAResourceClaimDeviceStatus",
    }),
  });
  const deviceClassConfiguration = object(define("DeviceClassConfiguration"), {
    deviceConfiguration: inline(1, deviceConfiguration),
  });
  const deviceClassSpec = object(define("DeviceClassSpec"), {
    selectors: optional(1, list(deviceSelector)),
    config: optional(2, list(deviceClassConfiguration)),
  });
  return {
    allocationMode,
    resourcePool,
    deviceAttribute,
    deviceTaint,
    deviceToleration,
    counterSet,
    deviceCounterConsumption,
    deviceSelector,
    deviceSubRequest,
    deviceConstraint,
    deviceConfiguration,
    deviceClaimConfiguration,
    deviceAllocationConfiguration,
    deviceRequestAllocationResult,
    allocationResult,
    allocatedDeviceStatus,
    resourceClaimStatus,
    deviceClassSpec,
  };
}

const common = createCommonTypes("v1beta2", 6);
const { deviceSelector, deviceSubRequest, deviceToleration, resourceClaimStatus } = common;

export type DeviceSelector = Infer<typeof deviceSelector>;
export type DeviceSubRequest = Infer<typeof deviceSubRequest>;
export type DeviceToleration = Infer<typeof deviceToleration>;
export type DeviceTaint = Infer<typeof common.deviceTaint>;
export type DeviceAttribute = Infer<typeof common.deviceAttribute>;
export type CounterSet = Infer<typeof common.counterSet>;
export type ResourcePool = Infer<typeof common.resourcePool>;
export type DeviceCounterConsumption = Infer<typeof common.deviceCounterConsumption>;
export type DeviceConstraint = Infer<typeof common.deviceConstraint>;
export type DeviceConfiguration = Infer<typeof common.deviceConfiguration>;
export type DeviceClaimConfiguration = Infer<typeof common.deviceClaimConfiguration>;
export type DeviceAllocationConfiguration = Infer<typeof common.deviceAllocationConfiguration>;
export type DeviceRequestAllocationResult = Infer<typeof common.deviceRequestAllocationResult>;
export type AllocationResult = Infer<typeof common.allocationResult>;
export type AllocatedDeviceStatus = Infer<typeof common.allocatedDeviceStatus>;
export type ResourceClaimStatus = Infer<typeof resourceClaimStatus>;
export type DeviceClassSpec = Infer<typeof common.deviceClassSpec>;

const exactDeviceRequest = object("resource/v1beta2.ExactDeviceRequest", {
  deviceClassName: required(1, string),
  selectors: optional(2, list(deviceSelector)),
  allocationMode: optional(3, common.allocationMode),
  count: optional(4, int64),
  adminAccess: pointer(5, boolean, { featureGate: "DRAAdminAccess" }),
  tolerations: optional(6, list(deviceToleration), { featureGate: "DRADeviceTaints" }),
});
export type ExactDeviceRequest = Infer<typeof exactDeviceRequest>;

const deviceRequest = object("resource/v1beta2.DeviceRequest", {
  name: required(1, string),
  exactly: pointer(2, exactDeviceRequest),
  firstAvailable: optional(3, list(deviceSubRequest), { featureGate: "DRAPrioritizedList" }),
});
export type DeviceRequest = Infer<typeof deviceRequest>;

const deviceClaim = object("resource/v1beta2.DeviceClaim", {
  requests: optional(1, list(deviceRequest), { emitEmpty: true }),
  constraints: optional(2, list(common.deviceConstraint)),
  config: optional(3, list(common.deviceClaimConfiguration)),
});
export type DeviceClaim = Infer<typeof deviceClaim>;

const resourceClaimSpec = object("resource/v1beta2.ResourceClaimSpec", {
  devices: optional(1, deviceClaim, { emitEmpty: true }),
});
export type ResourceClaimSpec = Infer<typeof resourceClaimSpec>;

export const resourceClaim = object("resource/v1beta2.ResourceClaim", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, resourceClaimSpec),
  status: optional(3, resourceClaimStatus),
});
export type ResourceClaim = Infer<typeof resourceClaim>;

const resourceClaimTemplateSpec = object("resource/v1beta2.ResourceClaimTemplateSpec", {
  metadata: optional(1, objectMeta),
  spec: required(2, resourceClaimSpec),
});

export const resourceClaimTemplate = object("resource/v1beta2.ResourceClaimTemplate", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, resourceClaimTemplateSpec),
});
export type ResourceClaimTemplate = Infer<typeof resourceClaimTemplate>;

export const deviceClass = object("resource/v1beta2.DeviceClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, common.deviceClassSpec),
});
export type DeviceClass = Infer<typeof deviceClass>;

const deviceCapacity = object("resource/v1beta2.DeviceCapacity", { value: required(1, quantity) });

const device = object("resource/v1beta2.Device", {
  name: required(1, string),
  attributes: optional(2, map(common.deviceAttribute)),
  capacity: optional(3, map(deviceCapacity)),
  consumesCounters: optional(4, list(common.deviceCounterConsumption), { featureGate: "DRAPartitionableDevices" }),
  nodeName: pointer(5, string, { featureGate: "DRAPartitionableDevices" }),
  nodeSelector: pointer(6, nodeSelector, { featureGate: "DRAPartitionableDevices" }),
  allNodes: pointer(7, boolean, { featureGate: "DRAPartitionableDevices" }),
  taints: optional(8, list(common.deviceTaint), { featureGate: "DRADeviceTaints" }),
});
export type Device = Infer<typeof device>;

const resourceSliceSpec = object("resource/v1beta2.ResourceSliceSpec", {
  driver: required(1, string),
  pool: required(2, common.resourcePool),
  nodeName: pointer(3, string),
  nodeSelector: pointer(4, nodeSelector),
  allNodes: pointer(5, boolean),
  devices: optional(6, list(device), { emitEmpty: true }),
  perDeviceNodeSelection: pointer(7, boolean, { featureGate: "DRAPartitionableDevices" }),
  sharedCounters: optional(8, list(common.counterSet), { featureGate: "DRAPartitionableDevices" }),
});
export type ResourceSliceSpec = Infer<typeof resourceSliceSpec>;

export const resourceSlice = object("resource/v1beta2.ResourceSlice", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, resourceSliceSpec),
});
export type ResourceSlice = Infer<typeof resourceSlice>;
