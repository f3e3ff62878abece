/** Conversions between the flat versions and the stored one. */
import type { ApiObject } from "../../kind.ts";
import type {
  Device,
  DeviceRequest,
  ExactDeviceRequest,
  ResourceClaim,
  ResourceClaimSpec,
  ResourceClaimTemplate,
  ResourceSlice,
} from "../schemas.ts";
import type {
  AlphaResourceSlice,
  BetaResourceSlice,
  FlatDeviceRequest,
  FlatResourceClaim,
  FlatResourceClaimSpec,
  FlatResourceClaimTemplate,
} from "./schemas.ts";

export function claimToStorage(claim: FlatResourceClaim): ResourceClaim {
  return { ...claim, spec: specToStorage(claim.spec) };
}

export function claimFromStorage(claim: ApiObject): FlatResourceClaim {
  const { spec, ...rest } = claim as ResourceClaim;
  return { ...rest, spec: specFromStorage(spec) };
}

export function templateToStorage(template: FlatResourceClaimTemplate): ResourceClaimTemplate {
  return { ...template, spec: { ...template.spec, spec: specToStorage(template.spec.spec) } };
}

export function templateFromStorage(template: ApiObject): FlatResourceClaimTemplate {
  const { spec, ...rest } = template as ResourceClaimTemplate;
  return { ...rest, spec: { ...spec, spec: specFromStorage(spec.spec) } };
}

function specToStorage({ devices, ...rest }: FlatResourceClaimSpec): ResourceClaimSpec {
  if (devices === undefined) return rest;
  const { requests, ...others } = devices;
  return {
    ...rest,
    devices: requests === undefined ? others : { ...others, requests: requests.map(requestToStorage) },
  };
}

function specFromStorage({ devices, ...rest }: ResourceClaimSpec): FlatResourceClaimSpec {
  if (devices === undefined) return rest;
  const { requests, ...others } = devices;
  const flat = requests?.map(requestFromStorage);
  return { ...rest, devices: flat === undefined ? others : { ...others, requests: flat } };
}

/** A request with any field of the exact form has that form. */
function requestToStorage({ name, firstAvailable, deviceClassName, ...exact }: FlatDeviceRequest): DeviceRequest {
  const isExact = Boolean(deviceClassName) || Object.values(exact).some((value) => value !== undefined && value !== 0);
  return {
    name,
    ...(isExact ? { exactly: { ...exact, deviceClassName: deviceClassName ?? "" } } : {}),
    ...(firstAvailable === undefined ? {} : { firstAvailable }),
  };
}

function requestFromStorage({ exactly, ...request }: DeviceRequest): FlatDeviceRequest {
  const flat: Partial<ExactDeviceRequest> = exactly ?? {};
  return { ...request, ...flat };
}

type FlatSlice<D> = Omit<BetaResourceSlice, "spec"> & {
  readonly spec: Omit<BetaResourceSlice["spec"], "devices"> & { readonly devices?: readonly D[] | undefined };
};

/** An empty name and false are absent in the stored version. */
function sliceToStorage<D>(slice: FlatSlice<D>, toDevice: (device: D) => Device): ResourceSlice {
  const { nodeName, allNodes, devices, ...spec } = slice.spec;
  return {
    ...slice,
    spec: {
      ...spec,
      ...(nodeName ? { nodeName } : {}),
      ...(allNodes ? { allNodes } : {}),
      ...(devices === undefined ? {} : { devices: devices.map(toDevice) }),
    },
  };
}

function sliceFromStorage<D>(slice: ApiObject, fromDevice: (device: Device) => D): FlatSlice<D> {
  const { spec, ...rest } = slice as ResourceSlice;
  const { devices, ...others } = spec;
  return { ...rest, spec: { ...others, ...(devices === undefined ? {} : { devices: devices.map(fromDevice) }) } };
}

type BetaDevice = NonNullable<BetaResourceSlice["spec"]["devices"]>[number];
type AlphaDevice = NonNullable<AlphaResourceSlice["spec"]["devices"]>[number];

export function betaSliceToStorage(slice: BetaResourceSlice): ResourceSlice {
  return sliceToStorage(slice, ({ name, basic }: BetaDevice): Device => ({ name, ...basic }));
}

export function betaSliceFromStorage(slice: ApiObject): BetaResourceSlice {
  return sliceFromStorage(slice, ({ name, ...basic }): BetaDevice => ({ name, basic }));
}

export function alphaSliceToStorage(slice: AlphaResourceSlice): ResourceSlice {
  return sliceToStorage(slice, ({ name, basic }: AlphaDevice): Device => {
    const { capacity, ...rest } = basic ?? {};
    return {
      name,
      ...rest,
      ...(capacity === undefined ? {} : { capacity: mapValues(capacity, (value) => ({ value })) }),
    };
  });
}

export function alphaSliceFromStorage(slice: ApiObject): AlphaResourceSlice {
  return sliceFromStorage(slice, ({ name, capacity, ...rest }): AlphaDevice => {
    const quantities = capacity === undefined ? {} : { capacity: mapValues(capacity, ({ value }) => value) };
    return { name, basic: { ...rest, ...quantities } };
  });
}

function mapValues<A, B>(values: Readonly<Record<string, A>>, convert: (value: A) => B): Readonly<Record<string, B>> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, convert(value)]));
}
