/** Rules for claims, of templates as well, and for the results of allocation. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  invalidUnquoted,
  notSupported,
  requiredField,
  tooLong,
  tooMany,
  unquoted,
} from "../../../schema/validation/field-error.ts";
import { validateNodeSelector } from "../../core/pod-spec/scheduling-validation.ts";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { validateInterfaceAddress } from "../../meta/validation/ip.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../../meta/validation/names.ts";
import {
  validateFullyQualifiedName,
  validateLabelName,
  validateList,
  validateParameters,
  validatePoolName,
  validateSet,
} from "../common-validation.ts";
import { validateSelectors } from "../device-selector.ts";
import { validateToleration } from "../device-taints.ts";
import type {
  AllocatedDeviceStatus,
  AllocationResult,
  DeviceAllocationConfiguration,
  DeviceClaim,
  DeviceConfiguration,
  DeviceConstraint,
  DeviceRequest,
  DeviceRequestAllocationResult,
  DeviceSubRequest,
  ExactDeviceRequest,
  ResourceClaim,
  ResourceClaimStatus,
} from "../schemas.ts";

const REQUESTS_MAX = 32;
const CONSTRAINTS_MAX = 32;
const CONFIGURATIONS_MAX = 32;
const SUBREQUESTS_MAX = 8;
const RESULTS_MAX = 32;
const CONSUMERS_MAX = 256;
const CONDITIONS_MAX = 8;
const PARAMETERS_BYTES_MAX = 10 * 1024;
const STATUS_DATA_BYTES_MAX = 10 * 1024;
const INTERFACE_NAME_MAX = 256;
const HARDWARE_ADDRESS_MAX = 128;
const IPS_MAX = 16;

const ALLOCATION_MODES = ["All", "ExactCount"];

/** Expressions and parameters that are stored are not checked again. */
export function validateDeviceClaim(
  claim: DeviceClaim | undefined,
  path: string,
  isStored: boolean,
): readonly FieldError[] {
  const { requests, constraints, config } = claim ?? {};
  const names = requestNames(claim);
  return [
    ...validateSet(
      requests,
      REQUESTS_MAX,
      `${path}.requests`,
      (request, at) => validateRequest(request, at, isStored),
      ({ name }) => name,
      "name",
    ),
    ...validateList(constraints, CONSTRAINTS_MAX, `${path}.constraints`, (constraint, at) =>
      validateConstraint(constraint, at, names),
    ),
    ...validateList(config, CONFIGURATIONS_MAX, `${path}.config`, (one, at) => [
      ...validateRequestNames(one.requests, `${at}.requests`, names),
      ...validateDeviceConfiguration(one, at, isStored),
    ]),
  ];
}

/** Subrequests by request. */
type RequestNames = ReadonlyMap<string, ReadonlySet<string>>;

function requestNames(claim: DeviceClaim | undefined): RequestNames {
  return new Map(
    (claim?.requests ?? []).map(({ name, firstAvailable = [] }) => [
      name,
      new Set(firstAvailable.map((sub) => sub.name)),
    ]),
  );
}

function validateRequest(request: DeviceRequest, path: string, isStored: boolean): readonly FieldError[] {
  const { name, exactly, firstAvailable = [] } = request;
  const errors = [...validateName(`${path}.name`, name, dns1123Label)];
  if (firstAvailable.length > 0) {
    const at = `${path}.firstAvailable`;
    const validate = (sub: DeviceSubRequest, subPath: string) => validateSubRequest(sub, subPath, isStored);
    errors.push(...validateSet(firstAvailable, SUBREQUESTS_MAX, at, validate, (sub) => sub.name, "name"));
  }
  if (exactly !== undefined) errors.push(...validateExactRequest(exactly, `${path}.exactly`, isStored));
  const one = "exactly one of `exactly` or `firstAvailable` is required";
  if (exactly === undefined && firstAvailable.length === 0) errors.push(requiredField(path, one));
  else if (exactly !== undefined && firstAvailable.length > 0) {
    errors.push(invalidField(path, null, `${one}, but multiple fields are set`));
  }
  return errors;
}

function validateSubRequest(request: DeviceSubRequest, path: string, isStored: boolean): readonly FieldError[] {
  const errors = validateExactRequest(request, path, isStored);
  return [...validateName(`${path}.name`, request.name, dns1123Label), ...errors];
}

function validateExactRequest(
  request: Pick<ExactDeviceRequest, "deviceClassName" | "selectors" | "allocationMode" | "count" | "tolerations">,
  path: string,
  isStored: boolean,
): readonly FieldError[] {
  const { deviceClassName, selectors, allocationMode = "", count = 0, tolerations } = request;
  const at = `${path}.deviceClassName`;
  return [
    ...(deviceClassName === "" ? [requiredField(at)] : validateName(at, deviceClassName, dns1123Subdomain)),
    ...validateSelectors(selectors, `${path}.selectors`, isStored),
    ...validateMode(allocationMode, count, path),
    ...validateList(tolerations, -1, `${path}.tolerations`, validateToleration),
  ];
}

function validateMode(mode: string, count: number, path: string): readonly FieldError[] {
  const at = `${path}.count`;
  if (mode === "All") {
    return count === 0 ? [] : [invalidField(at, count, "must not be specified when allocationMode is 'All'")];
  }
  if (mode === "ExactCount") return count > 0 ? [] : [invalidField(at, count, "must be greater than zero")];
  return [notSupported(`${path}.allocationMode`, mode, ALLOCATION_MODES)];
}

function validateConstraint(constraint: DeviceConstraint, path: string, names: RequestNames): readonly FieldError[] {
  const { requests, matchAttribute } = constraint;
  const at = `${path}.matchAttribute`;
  return [
    ...validateRequestNames(requests, `${path}.requests`, names),
    ...(matchAttribute === undefined ? [requiredField(at)] : validateFullyQualifiedName(matchAttribute, at)),
  ];
}

function validateRequestNames(
  requests: readonly string[] | undefined,
  path: string,
  names: RequestNames,
): readonly FieldError[] {
  return validateSet(
    requests,
    REQUESTS_MAX,
    path,
    (name, at) => validateRequestName(name, at, names),
    (name) => name,
  );
}

const NO_REQUEST =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

function validateRequestName(name: string, path: string, names: RequestNames): readonly FieldError[] {
  const segments = name.split("/");
  if (segments.length > 2) return [invalidField(path, name, NO_REQUEST)];
  const [request = "", sub] = segments;
  const found = names.get(request);
  const exists = found !== undefined && (sub === undefined || found.has(sub));
  return [
    ...segments.flatMap((segment) => validateName(path, segment, dns1123Label)),
    ...(exists ? [] : [invalidField(path, name, NO_REQUEST)]),
  ];
}

export function validateDeviceConfiguration(
  { opaque }: DeviceConfiguration,
  path: string,
  isStored: boolean,
): readonly FieldError[] {
  if (opaque === undefined) return [requiredField(`${path}.opaque`)];
  const at = `${path}.opaque`;
  return [
    ...validateDriverName(opaque.driver, `${at}.driver`),
    ...validateParameters(opaque.parameters, `${at}.parameters`, isStored, PARAMETERS_BYTES_MAX),
  ];
}

export function validateClaimStatusUpdate(next: ResourceClaim, previous: ResourceClaim): readonly FieldError[] {
  const status = next.status ?? {};
  const { allocation, reservedFor = [], devices } = status;
  const allocated = new Set((allocation?.devices?.results ?? []).map(deviceId));
  const errors: FieldError[] = [
    ...validateSet(
      reservedFor,
      CONSUMERS_MAX,
      "status.reservedFor",
      ({ resource, name, uid }, at) => [
        ...(resource === "" ? [requiredField(`${at}.resource`)] : []),
        ...(name === "" ? [requiredField(`${at}.name`)] : []),
        ...(uid === "" ? [requiredField(`${at}.uid`)] : []),
      ],
      ({ uid }) => uid,
      "uid",
    ),
    ...validateSet(
      devices,
      -1,
      "status.devices",
      (device, at) => validateDeviceStatus(device, at, allocated),
      deviceId,
      "deviceID",
      unquoted,
    ),
    ...validateReservations(next, previous),
  ];
  const before = previous.status?.allocation;
  if (allocation === undefined) return errors;
  return [
    ...errors,
    // Rules for results are stricter than they were, so stored ones are not checked again.
    ...(before === undefined
      ? validateAllocation(allocation, "status.allocation", requestNames(next.spec.devices))
      : validateImmutableField(allocation, before, "status.allocation")),
  ];
}

/** Consumers need an allocation; while the claim is being deleted none may be added. */
function validateReservations(next: ResourceClaim, previous: ResourceClaim): readonly FieldError[] {
  const { allocation, reservedFor = [] }: ResourceClaimStatus = next.status ?? {};
  const at = "status.reservedFor";
  if (reservedFor.length === 0) return [];
  if (allocation === undefined) return [forbiddenField(at, "may not be specified when `allocated` is not set")];
  if (next.metadata?.deletionTimestamp === undefined) return [];
  const known = new Set((previous.status?.reservedFor ?? []).map(consumerKey));
  if (reservedFor.every((consumer) => known.has(consumerKey(consumer)))) return [];
  return [
    forbiddenField(at, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"),
  ];
}

type Consumer = NonNullable<ResourceClaimStatus["reservedFor"]>[number];

/** All fields in one order: stored entries and those of the request can have different ones. */
function consumerKey({ apiGroup = "", resource, name, uid }: Consumer): string {
  return JSON.stringify([apiGroup, resource, name, uid]);
}

function deviceId({ driver, pool, device }: Pick<AllocatedDeviceStatus, "driver" | "pool" | "device">): string {
  return `${driver}/${pool}/${device}`;
}

function validateAllocation(allocation: AllocationResult, path: string, names: RequestNames): readonly FieldError[] {
  const { results, config } = allocation.devices ?? {};
  return [
    ...validateList(results, RESULTS_MAX, `${path}.devices.results`, (result, at) => validateResult(result, at, names)),
    ...validateList(config, 2 * CONFIGURATIONS_MAX, `${path}.devices.config`, (one, at) =>
      validateAllocatedConfiguration(one, at, names),
    ),
    ...(allocation.nodeSelector === undefined
      ? []
      : validateNodeSelector(allocation.nodeSelector, `${path}.nodeSelector`)),
  ];
}

function validateResult(
  { request, driver, pool, device }: DeviceRequestAllocationResult,
  path: string,
  names: RequestNames,
): readonly FieldError[] {
  return [
    ...validateRequestName(request, `${path}.request`, names),
    ...validateDriverName(driver, `${path}.driver`),
    ...validatePoolName(pool, `${path}.pool`),
    ...validateLabelName(device, `${path}.device`),
  ];
}

const SOURCES = ["FromClaim", "FromClass"];

function validateAllocatedConfiguration(
  config: DeviceAllocationConfiguration,
  path: string,
  names: RequestNames,
): readonly FieldError[] {
  const { source, requests } = config;
  const at = `${path}.source`;
  return [
    ...(source === "" ? [requiredField(at)] : SOURCES.includes(source) ? [] : [notSupported(at, source, SOURCES)]),
    ...validateRequestNames(requests, `${path}.requests`, names),
    ...validateDeviceConfiguration(config, path, false),
  ];
}

function validateDeviceStatus(
  status: AllocatedDeviceStatus,
  path: string,
  allocated: ReadonlySet<string>,
): readonly FieldError[] {
  const { driver, pool, device, conditions = [], data, networkData } = status;
  return [
    ...validateDriverName(driver, `${path}.driver`),
    ...validatePoolName(pool, `${path}.pool`),
    ...validateLabelName(device, `${path}.device`),
    ...(allocated.has(deviceId(status))
      ? []
      : [invalidUnquoted(path, deviceId(status), "must be an allocated device in the claim")]),
    ...(conditions.length > CONDITIONS_MAX ? [tooMany(`${path}.conditions`, conditions.length, CONDITIONS_MAX)] : []),
    ...validateConditions(conditions, `${path}.conditions`),
    ...(data === undefined ? [] : validateParameters(data, `${path}.data`, false, STATUS_DATA_BYTES_MAX)),
    ...(networkData === undefined ? [] : validateNetworkData(networkData, `${path}.networkData`)),
  ];
}

function validateNetworkData(
  { interfaceName = "", hardwareAddress = "", ips }: NonNullable<AllocatedDeviceStatus["networkData"]>,
  path: string,
): readonly FieldError[] {
  return [
    ...(Buffer.byteLength(interfaceName) > INTERFACE_NAME_MAX
      ? [tooLong(`${path}.interfaceName`, INTERFACE_NAME_MAX)]
      : []),
    ...(Buffer.byteLength(hardwareAddress) > HARDWARE_ADDRESS_MAX
      ? [tooLong(`${path}.hardwareAddress`, HARDWARE_ADDRESS_MAX)]
      : []),
    ...validateSet(ips, IPS_MAX, `${path}.ips`, validateInterfaceAddress, (ip) => ip),
  ];
}
