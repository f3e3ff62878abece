/**
 * Allocates devices of a node to claims, as Kubernetes' structured allocator: devices are tried in the order of their
 * slices, for one request after the other, until all requests of all claims have theirs.
 */
import type { AllocationResult, DeviceClass, ResourceClaim, ResourceSlice } from "../../../api/resource/schemas.ts";
import type { SelectedNode } from "../nodes/node-selector.ts";
import { type AllocatedDevice, makeAllocation } from "./allocation-result.ts";
import { type Candidate, type DevicePool, gatherPools, listCandidates, selectsNode } from "./device-pools.ts";
import {
  type CheckedOption,
  CLAIM_DEVICES_MAX,
  claimKey,
  type DeviceFeatures,
  type DeviceRequestOption,
  InvalidClaim,
  listOptions,
} from "./device-requests.ts";
import { toleratesTaints } from "./device-tolerations.ts";
import { MatchAttribute } from "./match-attribute.ts";
import { type SearchBudget, SearchBudgetExceeded } from "./search-budget.ts";
import type { SelectorCache } from "./selector-cache.ts";
import { hasCountersLeft } from "./shared-counters.ts";

export interface AllocatorOptions {
  /** Those without an allocation. */
  readonly claims: readonly ResourceClaim[];
  readonly findClass: (name: string) => DeviceClass | undefined;
  readonly isAllocated: (device: string) => boolean;
  readonly features: DeviceFeatures;
  readonly selectors: SelectorCache;
  readonly budget: SearchBudget;
}

export type AllocationOutcome =
  /** In the order of the claims. */
  | { readonly allocations: readonly AllocationResult[] }
  /** The node has not the devices. */
  | { readonly rejection: string }
  /** A claim or class is wrong. */
  | { readonly error: string };

/** Bounds the depth of the search. */
const DEVICES_MAX = 1024;
/** A device that is passed over takes a tenth of the time of one that is tried. */
const SCAN_STEPS = 0.1;

export function allocateDevices(
  node: SelectedNode,
  slices: Iterable<ResourceSlice>,
  options: AllocatorOptions,
): AllocationOutcome {
  try {
    const allocated = new Search(node, slices, options).run();
    if (allocated === undefined) return { rejection: "cannot allocate all claims" };
    const allocations = options.claims.map((claim, index) =>
      makeAllocation(claim, allocated[index]!, options.features.deviceTaints),
    );
    return { allocations };
  } catch (error) {
    if (error instanceof SearchBudgetExceeded) return { rejection: error.message };
    if (error instanceof InvalidClaim) return { error: error.message };
    throw error;
  }
}

interface SearchedRequest {
  readonly options: readonly CheckedOption[];
}

interface SearchedClaim {
  readonly claim: ResourceClaim;
  readonly requests: readonly SearchedRequest[];
  readonly constraints: readonly MatchAttribute[];
  readonly results: AllocatedDevice[];
  /** The chosen option of each request. */
  readonly chosen: CheckedOption[];
}

export interface ClaimSolution {
  readonly devices: readonly AllocatedDevice[];
  /** The chosen option of each request. */
  readonly options: readonly CheckedOption[];
}

class Search {
  readonly #node: SelectedNode;
  readonly #options: AllocatorOptions;
  readonly #pools: readonly DevicePool[];
  readonly #candidates: readonly Candidate[];
  readonly #claims: readonly SearchedClaim[];
  /** The claims to which a device is allocated in this search. */
  readonly #allocating = new Map<string, Set<SearchedClaim>>();

  constructor(node: SelectedNode, slices: Iterable<ResourceSlice>, options: AllocatorOptions) {
    this.#node = node;
    this.#options = options;
    this.#pools = gatherPools(slices, node, options.features.partitionableDevices);
    this.#candidates = listCandidates(this.#pools);
    this.#claims = options.claims.map((claim) => this.#checkClaim(claim));
    const total = this.#claims.reduce((sum, { requests }) => sum + countLeast(requests), 0);
    if (total > DEVICES_MAX) throw new InvalidClaim(`the pod requests ${total} devices, more than ${DEVICES_MAX}`);
  }

  /** Undefined if the node has not all devices. */
  run(): readonly ClaimSolution[] | undefined {
    if (!this.#allocateRequest(0, 0)) return undefined;
    return this.#claims.map(({ results, chosen }) => ({ devices: results, options: chosen }));
  }

  #checkClaim(claim: ResourceClaim): SearchedClaim {
    const { requests = [], constraints = [] } = claim.spec.devices ?? {};
    const where = `claim ${claimKey(claim)}`;
    const checked = requests.map((request) => {
      if ((request.firstAvailable ?? []).length > 0 && !this.#options.features.prioritizedList) {
        const why = "has subrequests, but the DRAPrioritizedList feature is disabled";
        throw new InvalidClaim(`${where}, request ${request.name}: ${why}`);
      }
      return { options: listOptions(request).map((option) => this.#checkOption(option, claim)) };
    });
    const least = countLeast(checked);
    if (least > CLAIM_DEVICES_MAX) {
      throw new InvalidClaim(
        `${where}: number of requested devices ${least} exceeds the claim limit of ${CLAIM_DEVICES_MAX}`,
      );
    }
    const matches = constraints.map((constraint, index) => {
      if (constraint.matchAttribute !== undefined) return new MatchAttribute(constraint, constraint.matchAttribute);
      throw new InvalidClaim(`${where}, constraint #${index}: empty constraint (unsupported constraint type?)`);
    });
    return { claim, requests: checked, constraints: matches, results: [], chosen: [] };
  }

  #checkOption(request: DeviceRequestOption, claim: ResourceClaim): CheckedOption {
    const { features, findClass } = this.#options;
    const where = `claim ${claimKey(claim)}, request ${request.name}`;
    const unset = request.selectors.findIndex(({ cel }) => cel === undefined);
    if (unset >= 0) {
      throw new InvalidClaim(`${where}, selector #${unset}: CEL expression empty (unsupported selector type?)`);
    }
    if (request.hasAdminAccess && !features.adminAccess) {
      throw new InvalidClaim(`${where}: admin access is requested, but the feature is disabled`);
    }
    if (request.className === "") {
      throw new InvalidClaim(`${where}: missing device class name (unsupported request type?)`);
    }
    const deviceClass = findClass(request.className);
    if (deviceClass === undefined) {
      const why = `deviceclass.resource.k8s.io "${request.className}" not found`;
      throw new InvalidClaim(`${where}: could not retrieve device class ${request.className}: ${why}`);
    }
    const option = { request, class: deviceClass, all: undefined, selectable: new Map<Candidate, boolean>() };
    switch (request.mode) {
      case "ExactCount":
        return { ...option, count: request.count };
      case "All": {
        const broken = this.#pools.find(({ isIncomplete, problem }) => isIncomplete || problem !== undefined);
        if (broken !== undefined) {
          const why = broken.isIncomplete ? "being updated" : "invalid";
          throw new InvalidClaim(`${where}: asks for all devices, but resource pool ${broken.id} is currently ${why}`);
        }
        const checked = { ...option, count: 0 };
        const all = this.#candidates.filter((candidate) => this.#isSelectable(checked, candidate, claim));
        return { ...option, count: all.length, all };
      }
      default:
        throw new InvalidClaim(`${where}: unsupported count mode ${request.mode}`);
    }
  }

  /** Allocates the request and all after it. */
  #allocateRequest(claimIndex: number, requestIndex: number): boolean {
    const claim = this.#claims[claimIndex];
    if (claim === undefined) return true;
    const request = claim.requests[requestIndex];
    if (request === undefined) return this.#allocateRequest(claimIndex + 1, 0);
    const proceed = (): boolean => this.#allocateRequest(claimIndex, requestIndex + 1);
    for (const option of request.options) {
      claim.chosen[requestIndex] = option;
      if (option.all !== undefined && option.all.length === 0) continue;
      const isDone =
        option.all === undefined
          ? this.#allocateCount(claim, option, 0, 0, proceed)
          : this.#allocateAll(claim, option, option.all, 0, proceed);
      if (isDone) return true;
    }
    return false;
  }

  #allocateAll(
    claim: SearchedClaim,
    option: CheckedOption,
    all: readonly Candidate[],
    index: number,
    proceed: () => boolean,
  ): boolean {
    const candidate = all[index];
    if (candidate === undefined) return proceed();
    if (claim.results.length + all.length - index > CLAIM_DEVICES_MAX) return false;
    const undo = this.#allocate(claim, option, candidate);
    if (undo === undefined) return false;
    if (this.#allocateAll(claim, option, all, index + 1, proceed)) return true;
    undo();
    return false;
  }

  /** `from`: candidates before it have been tried for the devices before this one; their order does not matter. */
  #allocateCount(
    claim: SearchedClaim,
    option: CheckedOption,
    index: number,
    from: number,
    proceed: () => boolean,
  ): boolean {
    if (index >= option.count) return proceed();
    if (claim.results.length + option.count - index > CLAIM_DEVICES_MAX) return false;
    for (let at = from; at < this.#candidates.length; at++) {
      const candidate = this.#candidates[at]!;
      const { pool } = candidate;
      if (pool.problem !== undefined) throw new InvalidClaim(`pool ${pool.name} is invalid: ${pool.problem}`);
      this.#options.budget.spend(SCAN_STEPS);
      if (this.#isTaken(claim, option.request, candidate)) continue;
      if (!this.#isSelectable(option, candidate, claim.claim)) continue;
      const undo = this.#allocate(claim, option, candidate);
      if (undo === undefined) continue;
      if (this.#allocateCount(claim, option, index + 1, at + 1, proceed)) return true;
      undo();
    }
    return false;
  }

  #isTaken(claim: SearchedClaim, { adminAccess }: DeviceRequestOption, { id }: Candidate): boolean {
    return adminAccess ? this.#allocating.get(id)?.has(claim) === true : this.#isInUse(id);
  }

  #isInUse(id: string): boolean {
    return this.#options.isAllocated(id) || (this.#allocating.get(id)?.size ?? 0) > 0;
  }

  #isSelectable(option: CheckedOption, candidate: Candidate, claim: ResourceClaim): boolean {
    const known = option.selectable.get(candidate);
    if (known !== undefined) return known;
    const { device, slice } = candidate;
    const className = option.class.metadata?.name ?? "";
    const isSelectable =
      this.#matches(option.class.spec.selectors ?? [], candidate, `class ${className}`) &&
      this.#matches(option.request.selectors, candidate, `claim ${claimKey(claim)}`) &&
      (slice.spec.perDeviceNodeSelection !== true || selectsNode(device, this.#node));
    option.selectable.set(candidate, isSelectable);
    return isSelectable;
  }

  #matches(selectors: CheckedOption["request"]["selectors"], { device, slice }: Candidate, where: string): boolean {
    const { selectors: cache, budget } = this.#options;
    for (const [index, { cel }] of selectors.entries()) {
      const result = cache.selects(cel?.expression ?? "", slice.spec.driver, device, budget);
      if (typeof result === "string") throw new InvalidClaim(`${where}: selector #${index}: ${result}`);
      if (!result) return false;
    }
    return true;
  }

  /** Returns what reverts it; undefined if the device cannot be used. */
  #allocate(claim: SearchedClaim, { request, all }: CheckedOption, candidate: Candidate): (() => void) | undefined {
    const { features } = this.#options;
    const { id, device, slice } = candidate;
    this.#options.budget.spend(1);
    if (this.#isTaken(claim, request, candidate)) return undefined;
    if (features.partitionableDevices && !hasCountersLeft(candidate, (other) => this.#isInUse(other))) return undefined;
    if (features.deviceTaints && !toleratesTaints(request.tolerations, device.taints ?? [])) return undefined;
    const { constraints } = claim;
    const failed = constraints.findIndex((constraint) => !constraint.add(request, slice.spec.driver, device));
    if (failed >= 0) {
      if (all !== undefined) {
        const why = "because a claim constraint would not be satisfied";
        throw new InvalidClaim(
          `claim ${claimKey(claim.claim)}, request ${request.name}: cannot add device ${id} ${why}`,
        );
      }
      for (const constraint of constraints.slice(0, failed)) constraint.remove(request);
      return undefined;
    }
    const claims = this.#allocating.get(id) ?? new Set();
    this.#allocating.set(id, claims.add(claim));
    claim.results.push({ request, candidate });
    return () => {
      for (const constraint of constraints) constraint.remove(request);
      claims.delete(claim);
      claim.results.pop();
    };
  }
}

/** The number of devices with the option of each request that needs the fewest. */
function countLeast(requests: readonly SearchedRequest[]): number {
  return requests.reduce((sum, { options }) => sum + Math.min(...options.map(({ count }) => count)), 0);
}
