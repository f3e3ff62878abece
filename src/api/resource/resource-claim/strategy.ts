import type { Strategy, SubresourceStrategy } from "../../kind.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import { dropStatus, keepStatus, replaceStatusOnly } from "../../strategy.ts";
import type {
  DeviceClaim,
  DeviceSubRequest,
  ExactDeviceRequest,
  ResourceClaim,
  ResourceClaimStatus,
} from "../schemas.ts";
import { validateClaimStatusUpdate, validateDeviceClaim } from "./validation.ts";

export const resourceClaimStrategy: Strategy<ResourceClaim> = {
  setDefaults: (claim) => {
    const { devices } = claim.spec;
    return devices === undefined ? claim : { ...claim, spec: { ...claim.spec, devices: setDeviceDefaults(devices) } };
  },
  prepareForCreate: dropStatus,
  prepareForUpdate: keepStatus,
  validate: (claim, previous) =>
    previous === undefined ? validateDeviceClaim(claim.spec.devices, "spec.devices", false) : [],
  validateUpdate: (next, previous) => [
    ...validateImmutableField(next.spec, previous.spec, "spec"),
    ...validateDeviceClaim(next.spec.devices, "spec.devices", true),
  ],
};

/** A request without a mode is for one device. */
export function setDeviceDefaults(devices: DeviceClaim): DeviceClaim {
  if (devices.requests === undefined) return devices;
  const requests = devices.requests.map((request) => ({
    ...request,
    ...(request.exactly === undefined ? {} : { exactly: setMode(request.exactly) }),
    ...(request.firstAvailable === undefined ? {} : { firstAvailable: request.firstAvailable.map(setMode) }),
  }));
  return { ...devices, requests };
}

function setMode<R extends ExactDeviceRequest | DeviceSubRequest>(request: R): R {
  const allocationMode = request.allocationMode || "ExactCount";
  const count = allocationMode === "ExactCount" && !request.count ? 1 : request.count;
  return { ...request, allocationMode, ...(count === undefined ? {} : { count }) };
}

export const resourceClaimStatusStrategy: Pick<
  Required<SubresourceStrategy<ResourceClaim>>,
  "prepareForUpdate" | "validateUpdate"
> = {
  prepareForUpdate: (next, previous) => dropDeallocatedDevices(replaceStatusOnly(next, previous), previous),
  validateUpdate: validateClaimStatusUpdate,
};

/** The status of devices ends with their allocation. */
function dropDeallocatedDevices(next: ResourceClaim, previous: ResourceClaim): ResourceClaim {
  const { devices } = next.status ?? {};
  if (devices === undefined) return next;
  const allocated = allocatedDevices(next.status);
  const before = allocatedDevices(previous.status);
  const kept = devices.filter((device) => !before.has(idOf(device)) || allocated.has(idOf(device)));
  if (kept.length === devices.length) return next;
  const { devices: _, ...status } = next.status ?? {};
  return { ...next, status: kept.length === 0 ? status : { ...status, devices: kept } };
}

function allocatedDevices(status: ResourceClaimStatus | undefined): ReadonlySet<string> {
  return new Set((status?.allocation?.devices?.results ?? []).map(idOf));
}

function idOf({ driver, pool, device }: { readonly driver: string; readonly pool: string; readonly device: string }) {
  return `${driver}/${pool}/${device}`;
}
