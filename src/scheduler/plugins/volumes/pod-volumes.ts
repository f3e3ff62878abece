/** What must be bound or provisioned for a pod on a node. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { compareQuantityTexts } from "../../../api/meta/quantity.ts";
import type { CSIStorageCapacity } from "../../../api/storage/csi-storage-capacity/schema.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { compileSelector } from "../../cache/label-match.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { Listers } from "../../framework/handle.ts";
import type { AssumedObjects } from "./assumed-objects.ts";
import { findMatchingVolume, isReachableFrom, requestOf } from "./match-volume.ts";
import { classOfClaim } from "./pod-claims.ts";

export const SELECTED_NODE = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

const NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity";
const BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind";
const NOT_ENOUGH_SPACE = "node(s) did not have enough free storage";
const VOLUME_MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

export interface VolumeBinding {
  readonly volume: PersistentVolume;
  readonly claim: PersistentVolumeClaim;
}

export interface PodVolumes {
  readonly bindings: readonly VolumeBinding[];
  /** Claims whose volumes are to be provisioned. */
  readonly provisions: readonly PersistentVolumeClaim[];
  /** The capacity for claims to be provisioned, where the driver publishes it for the node. */
  readonly capacities?: ReadonlyMap<PersistentVolumeClaim, string> | undefined;
}

export interface PodClaims {
  readonly bound: readonly PersistentVolumeClaim[];
  /** Claims that wait for the first pod that uses them. */
  readonly delayed: readonly PersistentVolumeClaim[];
}

export interface VolumeSources {
  readonly listers: Listers;
  readonly volumes: AssumedObjects<PersistentVolume>;
}

type Outcome = { readonly found: PodVolumes } | { readonly reasons: readonly string[] };

/** Throws for a claim whose class does not exist. */
export function findPodVolumes({ bound, delayed }: PodClaims, node: NodeInfo, sources: VolumeSources): Outcome {
  const reasons: string[] = [];
  const boundProblem = checkBoundClaims(bound, node, sources);
  if (boundProblem === NODE_CONFLICT) reasons.push(NODE_CONFLICT);
  const outcome = findForDelayed(delayed, node, sources);
  if ("reasons" in outcome) reasons.push(...outcome.reasons);
  if (boundProblem === VOLUME_MISSING) reasons.push(VOLUME_MISSING);
  return reasons.length > 0 ? { reasons } : outcome;
}

function checkBoundClaims(
  bound: readonly PersistentVolumeClaim[],
  node: NodeInfo,
  { volumes }: VolumeSources,
): string | undefined {
  for (const { spec } of bound) {
    const volume = volumes.get(spec?.volumeName ?? "");
    if (volume === undefined) return VOLUME_MISSING;
    if (!isReachableFrom(volume, node)) return NODE_CONFLICT;
  }
  return undefined;
}

function findForDelayed(claims: readonly PersistentVolumeClaim[], node: NodeInfo, sources: VolumeSources): Outcome {
  const bindings: VolumeBinding[] = [];
  const provisions: PersistentVolumeClaim[] = [];
  const unselected: PersistentVolumeClaim[] = [];
  for (const claim of claims) {
    const selectedNode = getMember(claim.metadata?.annotations, SELECTED_NODE);
    if (selectedNode === undefined) unselected.push(claim);
    else if (selectedNode === node.name) provisions.push(claim);
    else return { reasons: [BIND_CONFLICT] };
  }
  const chosen = new Set<string>();
  // The smallest first, so that each gets the smallest volume that suffices.
  unselected.sort((a, b) => compareQuantityTexts(requestOf(a), requestOf(b)));
  for (const claim of unselected) {
    const volume = findMatchingVolume(claim, sources.volumes.list(), node, chosen);
    if (volume === undefined) {
      provisions.push(claim);
      continue;
    }
    chosen.add(volume.metadata?.name ?? "");
    bindings.push({ volume, claim });
  }
  const capacities = new Map<PersistentVolumeClaim, string>();
  for (const claim of provisions) {
    const provision = checkProvision(claim, node, sources.listers);
    if (provision.problem !== undefined) return { reasons: [provision.problem] };
    if (provision.capacity !== undefined) capacities.set(claim, provision.capacity);
  }
  return { found: { bindings, provisions, capacities } };
}

interface Provision {
  readonly problem?: string;
  /** Undefined: the driver publishes none. */
  readonly capacity?: string | undefined;
}

function checkProvision(claim: PersistentVolumeClaim, node: NodeInfo, listers: Listers): Provision {
  const className = classOfClaim(claim);
  const { namespace, name } = claim.metadata ?? {};
  if (className === "") throw new Error(`no class for claim "${namespace}/${name}"`);
  const storageClass = listers.storageClasses.get(className);
  if (storageClass === undefined) throw new Error(`failed to find storage class "${className}"`);
  if (storageClass.provisioner === "" || storageClass.provisioner === NO_PROVISIONER) return { problem: BIND_CONFLICT };
  if (!allowsTopology(storageClass, node)) return { problem: BIND_CONFLICT };
  if (listers.csiDrivers.get(storageClass.provisioner)?.spec?.storageCapacity !== true) return {};
  const found = findCapacity(claim, storageClass, node, listers);
  return found === undefined ? { problem: NOT_ENOUGH_SPACE } : { capacity: found.capacity };
}

/** Without terms all nodes are allowed. */
function allowsTopology({ allowedTopologies = [] }: StorageClass, { labels }: NodeInfo): boolean {
  if (allowedTopologies.length === 0) return true;
  return allowedTopologies.some(({ matchLabelExpressions = [] }) => {
    const matches = matchLabelExpressions.every(({ key, values }) => {
      const value = getMember(labels, key);
      return value !== undefined && values.includes(value);
    });
    return matches && matchLabelExpressions.length > 0;
  });
}

/** Drivers that publish their capacity must have enough of it for the node. */
function findCapacity(
  claim: PersistentVolumeClaim,
  { metadata }: StorageClass,
  { labels }: NodeInfo,
  listers: Listers,
): CSIStorageCapacity | undefined {
  const request = requestOf(claim);
  for (const published of listers.storageCapacities.list()) {
    const { storageClassName, capacity, maximumVolumeSize, nodeTopology } = published;
    if (storageClassName !== metadata?.name || nodeTopology === undefined) continue;
    const limit = maximumVolumeSize ?? capacity;
    if (limit === undefined || compareQuantityTexts(limit, request) < 0) continue;
    if (compileSelector(nodeTopology).matches(labels)) return published;
  }
  return undefined;
}
