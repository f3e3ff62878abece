/**
 * The plugin DynamicResources: a pod runs where its resource claims can be used. Claims without an allocation get
 * devices of the selected node; they are written before the pod is bound.
 */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { claimToStorage } from "../../../api/resource/flat-versions/conversion.ts";
import { betaResourceClaimKind } from "../../../api/resource/flat-versions/kinds.ts";
import type { FlatResourceClaim } from "../../../api/resource/flat-versions/schemas.ts";
import { isReservedFor } from "../../../api/resource/pod-claims.ts";
import type { AllocationResult, DeviceClass, ResourceClaim } from "../../../api/resource/schemas.ts";
import type { Client } from "../../../client/client.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { uidOf } from "../../cache/pod-info.ts";
import type { Cycle, NodeFilter, Plugin, PreFilterResult } from "../../framework/plugin.ts";
import { failed, type Rejection, unresolvable, unschedulable } from "../../framework/rejection.ts";
import { matchesTerms, type SelectedNode } from "../nodes/node-selector.ts";
import { allocateDevices } from "./allocator.ts";
import { bindClaim } from "./bind-claim.ts";
import type { ClaimTracker } from "./claim-tracker.ts";
import { claimKey, type DeviceFeatures } from "./device-requests.ts";
import { findPodClaims, isSchedulableAfterClaimChange } from "./pod-claims.ts";
import { SearchBudget } from "./search-budget.ts";
import type { SelectorCache } from "./selector-cache.ts";
import type { SliceTracker } from "./slice-tracker.ts";

export const NAME = "DynamicResources";

export interface DynamicResourcesDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly claims: ClaimTracker;
  readonly slices: SliceTracker;
  readonly findClass: (name: string) => DeviceClass | undefined;
  readonly selectors: SelectorCache;
  readonly features: DeviceFeatures;
  /** Receives requests that end after the cycle. They never reject. */
  readonly onBackground: (request: Promise<void>) => void;
}

interface PodClaimState {
  claim: FlatResourceClaim;
  /** What the selected node gives to it; undefined for a claim that is allocated already. */
  allocation: AllocationResult | undefined;
}

interface State {
  readonly claims: readonly PodClaimState[];
  /** Those without an allocation. */
  readonly unallocated: readonly PodClaimState[];
  /** In the order of `unallocated`, by node that passed the filter. */
  readonly byNode: Map<string, readonly AllocationResult[]>;
  /** Allocated claims that a node cannot use. */
  readonly unavailable: Set<PodClaimState>;
}

export function createDynamicResources(deps: DynamicResourcesDeps): Plugin {
  const { claims, clock, log } = deps;
  const find = (name: string, namespace: string): FlatResourceClaim | undefined => claims.get(name, namespace);
  return {
    name: NAME,
    points: ["preEnqueue", "preFilter", "filter", "postFilter", "reserve", "preBind"],
    events: [
      { resource: "Node", actions: ["Add", "UpdateNodeLabel"] },
      {
        resource: "ResourceClaim",
        actions: ["Add", "Update"],
        hint: (pod, { before, after }) =>
          isSchedulableAfterClaimChange(pod, before as FlatResourceClaim | undefined, after as FlatResourceClaim, find),
      },
      {
        resource: "UnschedulablePod",
        actions: ["UpdatePodGeneratedResourceClaim"],
        hint: (pod, { after }) =>
          uidOf(pod) === uidOf(after as Pod) && typeof findPodClaims(after as Pod, find) !== "string",
      },
      { resource: "DeviceClass", actions: ["Add", "Update"] },
      { resource: "ResourceSlice", actions: ["Add", "Update"] },
    ],
    preEnqueue({ pod }) {
      const found = findPodClaims(pod, find);
      return typeof found === "string" ? unresolvable(NAME, found) : undefined;
    },
    preFilter: (cycle) => prepareFilter(cycle, deps),
    async postFilter(cycle) {
      const rejection = await deallocateUnavailable(cycle, deps);
      return { nominatedNodeName: undefined, rejection };
    },
    reserve(cycle, node) {
      const state = stateOf(cycle);
      if (state === undefined || state.unallocated.length === 0) return undefined;
      const allocations = state.byNode.get(node.name);
      if (allocations === undefined) return failed(NAME, "claim allocation not found for node");
      for (const [index, entry] of state.unallocated.entries()) {
        entry.allocation = allocations[index];
        if (entry.allocation !== undefined) claims.setPending(entry.claim.metadata?.uid ?? "", entry.allocation);
      }
      return undefined;
    },
    unreserve(cycle) {
      for (const { claim } of stateOf(cycle)?.claims ?? []) {
        if (claims.removePending(claim.metadata?.uid ?? "")) claims.restore(claim);
        if (claim.status?.allocation === undefined || !isReservedFor(cycle.pod.pod, claim)) continue;
        deps.onBackground(removeReservation(cycle.pod.pod, claim, deps));
      }
    },
    async preBind(cycle, _node, signal) {
      for (const entry of stateOf(cycle)?.claims ?? []) {
        if (isReservedFor(cycle.pod.pod, entry.claim)) continue;
        const { claim, allocation } = entry;
        try {
          entry.claim = await bindClaim(cycle.pod.pod, claim, allocation, { client: deps.client, clock }, signal);
          if (allocation !== undefined) claims.assume(entry.claim);
        } catch (error) {
          log.v(3)?.info("Cannot bind a resource claim", { claim: claimKey(claim), error: String(error) });
          return failed(NAME, error);
        } finally {
          if (allocation !== undefined) claims.removePending(claim.metadata?.uid ?? "");
        }
      }
      return undefined;
    },
  };
}

function stateOf({ states }: Cycle): State | undefined {
  // Only this plugin writes the entry.
  return states.get(NAME) as State | undefined;
}

function prepareFilter(cycle: Cycle, deps: DynamicResourcesDeps): PreFilterResult {
  const { pod } = cycle.pod;
  if ((pod.spec?.resourceClaims ?? []).length === 0) return "skip";
  const found = findPodClaims(pod, (name, namespace) => deps.claims.get(name, namespace));
  if (typeof found === "string") return { rejection: unresolvable(NAME, found) };
  if (found.length === 0) return "skip";
  // Two names of a pod may be of one claim, which is allocated once.
  const entries = new Map(
    found.map((claim) => [claim.metadata?.uid ?? "", { claim, allocation: undefined } as PodClaimState] as const),
  );
  const claims = [...entries.values()];
  const unallocated = claims.filter(({ claim }) => claim.status?.allocation === undefined);
  const stored = unallocated.map(({ claim }) => claimToStorage(claim));
  for (const claim of stored) {
    const rejection = rejectClaim(claim, deps);
    if (rejection !== undefined) return { rejection };
  }
  const state: State = { claims, unallocated, byNode: new Map(), unavailable: new Set() };
  cycle.states.set(NAME, state);
  return { filter: createFilter(state, stored, deps) };
}

/** What keeps the claim from being allocated on any node. */
function rejectClaim(
  claim: ResourceClaim,
  { claims, findClass, features }: DynamicResourcesDeps,
): Rejection | undefined {
  if (claims.isPending(claim.metadata?.uid ?? "")) {
    return unresolvable(NAME, `resource claim ${claimKey(claim)} is in the process of being allocated`);
  }
  for (const { name, exactly, firstAvailable = [] } of claim.spec.devices?.requests ?? []) {
    if (firstAvailable.length > 0 && !features.prioritizedList) {
      const why = "has subrequests, but the DRAPrioritizedList feature is disabled";
      return unresolvable(NAME, `resource claim ${claimKey(claim)}, request ${name}: ${why}`);
    }
    const used =
      firstAvailable.length === 0
        ? [[name, exactly?.deviceClassName ?? ""] as const]
        : firstAvailable.map((each) => [`${name}/${each.name}`, each.deviceClassName] as const);
    for (const [request, className] of used) {
      if (className === "") return failed(NAME, `request ${request}: unsupported request type`);
      if (findClass(className) !== undefined) continue;
      return unresolvable(NAME, `request ${request}: device class ${className} does not exist`);
    }
  }
  return undefined;
}

function createFilter(state: State, claims: readonly ResourceClaim[], deps: DynamicResourcesDeps): NodeFilter {
  const { findClass, features, selectors } = deps;
  const isAllocated = (device: string): boolean => deps.claims.isAllocated(device);
  const options = { claims, findClass, isAllocated, features, selectors, budget: new SearchBudget() };
  return {
    filter(node) {
      if (claims.length > 0) {
        const outcome = allocateDevices(node, deps.slices.listFor(node.name), options);
        if ("error" in outcome) return failed(NAME, outcome.error);
        if ("rejection" in outcome) return unresolvable(NAME, outcome.rejection);
        state.byNode.set(node.name, outcome.allocations);
      }
      const unavailable = state.claims.filter((entry) => !isAvailable(entry, node));
      for (const entry of unavailable) state.unavailable.add(entry);
      return unavailable.length === 0 ? undefined : unresolvable(NAME, "resourceclaim not available on the node");
    },
  };
}

function isAvailable({ claim }: PodClaimState, node: SelectedNode): boolean {
  const selector = claim.status?.allocation?.nodeSelector;
  return selector === undefined || matchesTerms(selector.nodeSelectorTerms, node);
}

/** Releases one claim that is allocated elsewhere and that no other pod uses, so that it can be allocated anew. */
async function deallocateUnavailable(cycle: Cycle, { client }: DynamicResourcesDeps): Promise<Rejection> {
  const { pod } = cycle.pod;
  if ((pod.spec?.resourceClaims ?? []).length === 0) return unschedulable(NAME);
  const state = stateOf(cycle);
  if (state === undefined) return unschedulable(NAME, "no new claims to deallocate");
  for (const { claim } of state.unavailable) {
    const others = (claim.status?.reservedFor ?? []).filter(({ uid }) => uid !== pod.metadata?.uid);
    if (others.length > 0) continue;
    const { allocation: _, reservedFor: __, ...status } = claim.status ?? {};
    try {
      await client.updateStatus(betaResourceClaimKind, { ...claim, status });
    } catch (error) {
      return failed(NAME, error);
    }
    return unschedulable(NAME, "deallocation of ResourceClaim completed");
  }
  return unschedulable(NAME, "still not schedulable");
}

/** Never rejects: the reservation is removed when the pod ends, or kept when it is scheduled again. */
async function removeReservation(
  pod: Pod,
  claim: FlatResourceClaim,
  { client, log }: DynamicResourcesDeps,
): Promise<void> {
  const { name = "", namespace, uid } = claim.metadata ?? {};
  const patch = { metadata: { uid }, status: { reservedFor: [{ $patch: "delete", uid: pod.metadata?.uid }] } };
  try {
    await client.patch(betaResourceClaimKind, { name, namespace }, "strategic", patch, { subresource: "status" });
  } catch (error) {
    log.warn("Cannot remove the reservation of a resource claim", { claim: claimKey(claim), error: String(error) });
  }
}
