/**
 * The types of `resource.k8s.io/v1beta1` and `v1alpha3`: requests and devices have the fields of their one form, and
 * capacities of `v1alpha3` are quantities.
 */
import {
  boolean,
  int64,
  list,
  map,
  object,
  optional,
  pointer,
  quantity,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer, Schema } from "../../../schema/schema.ts";
import { nodeSelector } from "../../core/node/selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { createCommonTypes } from "../schemas.ts";

const PARTITIONABLE = { featureGate: "DRAPartitionableDevices" } as const;

function createFlatTypes(version: "v1beta1" | "v1alpha3") {
  const common = createCommonTypes(version, 7);
  const define = (name: string): string => `resource/${version}.${name}`;
  const deviceRequest = object(define("DeviceRequest"), {
    name: required(1, string),
    deviceClassName: optional(2, string, { emitEmpty: true }),
    selectors: optional(3, list(common.deviceSelector)),
    allocationMode: optional(4, common.allocationMode),
    count: optional(5, int64),
    adminAccess: pointer(6, boolean, { featureGate: "DRAAdminAccess" }),
    firstAvailable: optional(7, list(common.deviceSubRequest), { featureGate: "DRAPrioritizedList" }),
    tolerations: optional(8, list(common.deviceToleration), { featureGate: "DRADeviceTaints" }),
  });
  const deviceClaim = object(define("DeviceClaim"), {
    requests: optional(1, list(deviceRequest), { emitEmpty: true }),
    constraints: optional(2, list(common.deviceConstraint)),
    config: optional(3, list(common.deviceClaimConfiguration)),
  });
  const resourceClaimSpec = object(define("ResourceClaimSpec"), {
    devices: optional(1, deviceClaim, { emitEmpty: true }),
  });
  const resourceClaim = object(define("ResourceClaim"), {
    ...typeMeta,
    metadata: optional(1, objectMeta),
    spec: required(2, resourceClaimSpec),
    status: optional(3, common.resourceClaimStatus),
  });
  const resourceClaimTemplate = object(define("ResourceClaimTemplate"), {
    ...typeMeta,
    metadata: optional(1, objectMeta),
    spec: required(
      2,
      object(define("ResourceClaimTemplateSpec"), {
        metadata: optional(1, objectMeta),
        spec: required(2, resourceClaimSpec),
      }),
    ),
  });
  return { common, deviceRequest, resourceClaimSpec, resourceClaim, resourceClaimTemplate };
}

const beta = createFlatTypes("v1beta1");
export type FlatDeviceRequest = Infer<typeof beta.deviceRequest>;
export type FlatResourceClaimSpec = Infer<typeof beta.resourceClaimSpec>;
export type FlatResourceClaim = Infer<typeof beta.resourceClaim>;
export type FlatResourceClaimTemplate = Infer<typeof beta.resourceClaimTemplate>;

/** `capacity` is the type of one capacity. */
function createSlice<const C extends Schema>(
  { common }: ReturnType<typeof createFlatTypes>,
  version: "v1beta1" | "v1alpha3",
  capacity: C,
) {
  const define = (name: string): string => `resource/${version}.${name}`;
  const selectorGate = version === "v1alpha3" ? PARTITIONABLE : {};
  const basicDevice = object(define("BasicDevice"), {
    attributes: optional(1, map(common.deviceAttribute)),
    capacity: optional(2, map(capacity)),
    consumesCounters: optional(3, list(common.deviceCounterConsumption), PARTITIONABLE),
    nodeName: pointer(4, string, PARTITIONABLE),
    nodeSelector: pointer(5, nodeSelector, selectorGate),
    allNodes: pointer(6, boolean, PARTITIONABLE),
    taints: optional(7, list(common.deviceTaint), { featureGate: "DRADeviceTaints" }),
  });
  const device = object(define("Device"), { name: required(1, string), basic: pointer(2, basicDevice) });
  const spec = object(define("ResourceSliceSpec"), {
    driver: required(1, string),
    pool: required(2, common.resourcePool),
    nodeName: optional(3, string),
    nodeSelector: pointer(4, nodeSelector),
    allNodes: optional(5, boolean),
    devices: optional(6, list(device), { emitEmpty: true }),
    perDeviceNodeSelection: pointer(7, boolean, PARTITIONABLE),
    sharedCounters: optional(8, list(common.counterSet), PARTITIONABLE),
  });
  return object(define("ResourceSlice"), { ...typeMeta, metadata: optional(1, objectMeta), spec: required(2, spec) });
}

export const betaTypes = beta;
export const alphaTypes = createFlatTypes("v1alpha3");

const betaCapacity = object("resource/v1beta1.DeviceCapacity", { value: required(1, quantity) });
export const betaResourceSlice = createSlice(beta, "v1beta1", betaCapacity);
export type BetaResourceSlice = Infer<typeof betaResourceSlice>;

export const alphaResourceSlice = createSlice(alphaTypes, "v1alpha3", quantity);
export type AlphaResourceSlice = Infer<typeof alphaResourceSlice>;
