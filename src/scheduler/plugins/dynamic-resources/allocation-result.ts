/** What the status of a claim shows of the devices that are allocated to it. */
import type { NodeSelector, NodeSelectorRequirement } from "../../../api/core/node/selector.ts";
import type {
  AllocationResult,
  DeviceAllocationConfiguration,
  DeviceRequestAllocationResult,
  ResourceClaim,
} from "../../../api/resource/schemas.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Candidate } from "./device-pools.ts";
import { type CheckedOption, claimKey, type DeviceRequestOption, InvalidClaim } from "./device-requests.ts";

export interface AllocatedDevice {
  readonly request: DeviceRequestOption;
  readonly candidate: Candidate;
}

interface Solution {
  readonly devices: readonly AllocatedDevice[];
  readonly options: readonly CheckedOption[];
}

/** `hasTaints`: the gate of device taints, with which results name the tolerations of their request. */
export function makeAllocation(
  claim: ResourceClaim,
  { devices, options }: Solution,
  hasTaints: boolean,
): AllocationResult {
  const config = listConfigurations(claim, options);
  const nodeSelector = makeNodeSelector(claim, devices);
  return {
    devices: {
      results: devices.map((device) => makeResult(device, hasTaints)),
      ...(config.length === 0 ? {} : { config }),
    },
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
  };
}

function makeResult({ request, candidate }: AllocatedDevice, hasTaints: boolean): DeviceRequestAllocationResult {
  const { slice, pool, device } = candidate;
  return {
    request: pathOf(request),
    driver: slice.spec.driver,
    pool: pool.name,
    device: device.name,
    ...(request.adminAccess ? { adminAccess: true } : {}),
    ...(hasTaints && request.tolerations.length > 0 ? { tolerations: request.tolerations } : {}),
  };
}

/** The name of an alternative includes that of its request. */
function pathOf({ name, parent }: DeviceRequestOption): string {
  return parent === undefined ? name : `${parent}/${name}`;
}

/** Those of the classes of the chosen options, then those of the claim for them. */
function listConfigurations(
  claim: ResourceClaim,
  options: readonly CheckedOption[],
): readonly DeviceAllocationConfiguration[] {
  const ofClasses = options.flatMap((option) =>
    (option.class.spec.config ?? []).map((config) => ({ source: "FromClass", ...config })),
  );
  const ofClaim = (claim.spec.devices?.config ?? []).flatMap(({ requests = [], ...config }) => {
    const entry = { source: "FromClaim", ...(requests.length === 0 ? {} : { requests }), ...config };
    if (requests.length === 0) return [entry];
    const applies = ({ request }: CheckedOption): boolean =>
      requests.includes(request.parent ?? request.name) || requests.includes(pathOf(request));
    return options.filter(applies).map(() => entry);
  });
  return [...ofClasses, ...ofClaim];
}

/** Where the devices can be used; undefined: on all nodes. */
function makeNodeSelector(claim: ResourceClaim, devices: readonly AllocatedDevice[]): NodeSelector | undefined {
  const matchFields: NodeSelectorRequirement[] = [];
  const matchExpressions: NodeSelectorRequirement[] = [];
  for (const { candidate } of devices) {
    const { device, slice } = candidate;
    const { nodeName, nodeSelector } = slice.spec.perDeviceNodeSelection === true ? device : slice.spec;
    if (nodeName) {
      const requirement = { key: "metadata.name", operator: "In" as const, values: [nodeName] };
      return { nodeSelectorTerms: [{ matchFields: [requirement] }] };
    }
    const { nodeSelectorTerms = [] } = nodeSelector ?? {};
    if (nodeSelectorTerms.length > 1) {
      const why = `unsupported ResourceSlice.NodeSelector with ${nodeSelectorTerms.length} terms`;
      throw new InvalidClaim(`create NodeSelector for claim ${claimKey(claim)}: ${why}`);
    }
    addMissing(matchFields, nodeSelectorTerms[0]?.matchFields ?? []);
    addMissing(matchExpressions, nodeSelectorTerms[0]?.matchExpressions ?? []);
  }
  if (matchFields.length + matchExpressions.length === 0) return undefined;
  const term = {
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
    ...(matchFields.length === 0 ? {} : { matchFields }),
  };
  return { nodeSelectorTerms: [term] };
}

function addMissing(to: NodeSelectorRequirement[], from: readonly NodeSelectorRequirement[]): void {
  const plain = ({ key, operator, values = [] }: NodeSelectorRequirement) => [key, operator, values.toSorted()];
  for (const requirement of from) {
    if (!to.some((known) => deepEqual(plain(known), plain(requirement)))) to.push(requirement);
  }
}
