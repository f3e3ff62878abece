/** The requests of claims, with the alternatives of each, checked for one node. */
import type {
  DeviceClass,
  DeviceRequest,
  DeviceSelector,
  DeviceToleration,
  ResourceClaim,
} from "../../../api/resource/schemas.ts";
import type { Candidate } from "./device-pools.ts";

/** The gates that change how devices are allocated. */
export interface DeviceFeatures {
  readonly adminAccess: boolean;
  readonly prioritizedList: boolean;
  readonly partitionableDevices: boolean;
  readonly deviceTaints: boolean;
}

/** A request, or one of the alternatives in `firstAvailable`. */
export interface DeviceRequestOption {
  readonly name: string;
  /** The request that has the alternative. */
  readonly parent: string | undefined;
  readonly className: string;
  readonly mode: string;
  readonly count: number;
  readonly hasAdminAccess: boolean;
  readonly adminAccess: boolean;
  readonly selectors: readonly DeviceSelector[];
  readonly tolerations: readonly DeviceToleration[];
}

/** What a node offers for it. */
export interface CheckedOption {
  readonly request: DeviceRequestOption;
  readonly class: DeviceClass;
  readonly count: number;
  /** The devices of a request for all; undefined for one with a count. */
  readonly all: readonly Candidate[] | undefined;
  /** By device, as far as it has been checked. */
  readonly selectable: Map<Candidate, boolean>;
}

/** Kubernetes' maximum number of devices of a claim. */
export const CLAIM_DEVICES_MAX = 32;

/** A claim that cannot be allocated anywhere as it is. */
export class InvalidClaim extends Error {}

export function claimKey({ metadata }: Pick<ResourceClaim, "metadata">): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** The alternatives of the request, the preferred one first. */
export function listOptions({ name, exactly, firstAvailable = [] }: DeviceRequest): readonly DeviceRequestOption[] {
  if (firstAvailable.length === 0) return [makeOption({ ...exactly, name }, undefined, exactly?.adminAccess)];
  return firstAvailable.map((each) => makeOption(each, name, undefined));
}

interface OptionFields {
  readonly name: string;
  readonly deviceClassName?: string | undefined;
  readonly allocationMode?: string | undefined;
  readonly count?: number | bigint | undefined;
  readonly selectors?: readonly DeviceSelector[] | undefined;
  readonly tolerations?: readonly DeviceToleration[] | undefined;
}

function makeOption(fields: OptionFields, parent: string | undefined, adminAccess: boolean | undefined) {
  const { name, deviceClassName = "", allocationMode = "", count = 0, selectors = [], tolerations = [] } = fields;
  return {
    name,
    parent,
    className: deviceClassName,
    mode: allocationMode,
    count: Number(count),
    hasAdminAccess: adminAccess !== undefined,
    adminAccess: adminAccess === true,
    selectors,
    tolerations,
  };
}
