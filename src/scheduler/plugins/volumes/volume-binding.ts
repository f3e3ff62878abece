import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { compareQuantityTexts } from "../../../api/meta/quantity.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";
import type { CSIStorageCapacity } from "../../../api/storage/csi-storage-capacity/schema.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { Handle } from "../../framework/handle.ts";
import type { Cycle, Plugin } from "../../framework/plugin.ts";
import { failed, type Rejection, unresolvable } from "../../framework/rejection.ts";
import { compileShape, type ShapePoint } from "../resources/scoring-strategy.ts";
import { AssumedObjects } from "./assumed-objects.ts";
import { assumePodVolumes, bindPodVolumes, isFullyBound, revertPodVolumes } from "./bind-volumes.ts";
import {
  claimNamesOf,
  classOfClaim,
  isOwnedByPod,
  notFound,
  notOwnedMessage,
  usesClaim,
  waitsForConsumer,
} from "./pod-claims.ts";
import { findPodVolumes, type PodClaims, type PodVolumes } from "./pod-volumes.ts";
import { scoreVolumes } from "./volume-score.ts";

const NAME = "VolumeBinding";
const DEFAULT_TIMEOUT_SECONDS = 600;

export interface VolumeBindingArgs {
  /** How long the binding of volumes may take. */
  readonly bindTimeoutSeconds?: number | undefined;
  /** The score of a node by the part of the capacity that is requested; most free capacity first when absent. */
  readonly shape?: readonly ShapePoint[] | undefined;
}

const PREFERS_FREE_CAPACITY: readonly ShapePoint[] = [
  { utilization: 0, score: 10 },
  { utilization: 100, score: 0 },
];

/** The decision for each node that passed the filter, and for the selected node what is assumed. */
interface VolumeState {
  readonly byNode: Map<string, PodVolumes>;
  assumed: PodVolumes | undefined;
}

/** Bound claims restrict the nodes; claims that wait for a consumer are bound to volumes that the node reaches. */
export function createVolumeBinding(args: VolumeBindingArgs, handle: Handle, scoresCapacity: boolean): Plugin {
  const { shape = [] } = args;
  const score = scoresCapacity ? compileShape(shape.length === 0 ? PREFERS_FREE_CAPACITY : shape) : undefined;
  const { listers } = handle;
  const assumedObjects = {
    volumes: new AssumedObjects(listers.volumes),
    claims: new AssumedObjects(listers.claims),
  };
  const sources = { listers, volumes: assumedObjects.volumes };
  const timeoutMs = (args.bindTimeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000;
  return {
    name: NAME,
    points: ["preFilter", "filter", "reserve", "preBind", "preScore", "score"],
    events: [
      {
        resource: "StorageClass",
        actions: ["Add", "Update"],
        hint: (_pod, { before, after }) =>
          before === undefined ||
          !deepEqual((before as StorageClass).allowedTopologies, (after as StorageClass).allowedTopologies),
      },
      {
        resource: "PersistentVolumeClaim",
        actions: ["Add", "Update"],
        hint: (pod, { after }) => usesClaim(pod, after as PersistentVolumeClaim),
      },
      { resource: "PersistentVolume", actions: ["Add", "Update"] },
      { resource: "Node", actions: ["Add", "UpdateNodeLabel"] },
      {
        resource: "CSINode",
        actions: ["Add", "Update"],
        hint: (_pod, { before, after }) => before === undefined || migratedOf(before) !== migratedOf(after),
      },
      {
        resource: "CSIDriver",
        actions: ["Update"],
        hint: (pod, { before, after }) => ignoresCapacityNow(pod, before as CSIDriver, after as CSIDriver),
      },
      {
        resource: "CSIStorageCapacity",
        actions: ["Add", "Update"],
        hint: (_pod, { before, after }) =>
          before === undefined || hasGrown(before as CSIStorageCapacity, after as CSIStorageCapacity),
      },
    ],
    preFilter(cycle) {
      const claims = claimsOf(cycle.pod.pod, assumedObjects.claims, handle);
      if (claims === undefined) return "skip";
      if ("code" in claims) return { rejection: claims };
      const state: VolumeState = { byNode: new Map(), assumed: undefined };
      cycle.states.set(NAME, state);
      return {
        filter: {
          filter(node) {
            try {
              const outcome = findPodVolumes(claims, node, sources);
              if ("reasons" in outcome) return unresolvable(NAME, ...outcome.reasons);
              state.byNode.set(node.name, outcome.found);
              return undefined;
            } catch (error) {
              handle.onVolumeError?.("predicate");
              return failed(NAME, error);
            }
          },
        },
      };
    },
    preScore(cycle) {
      const state = stateOf(cycle);
      if (score === undefined || state === undefined) return undefined;
      return { score: ({ name }) => scoreVolumes(state.byNode.get(name), score) };
    },
    reserve(cycle, node) {
      const state = stateOf(cycle);
      const decided = state?.byNode.get(node.name);
      if (state === undefined || decided === undefined) return undefined;
      if (decided.bindings.length + decided.provisions.length === 0) return undefined;
      state.assumed = assumePodVolumes(decided, node.name, assumedObjects);
      return undefined;
    },
    unreserve(cycle) {
      const assumed = stateOf(cycle)?.assumed;
      if (assumed !== undefined) revertPodVolumes(assumed, assumedObjects);
    },
    async preBind(cycle, node, signal) {
      const assumed = stateOf(cycle)?.assumed;
      if (assumed === undefined) return undefined;
      try {
        await bindPodVolumes(cycle.pod, node, assumed, handle, timeoutMs, signal);
        return undefined;
      } catch (error) {
        handle.onVolumeError?.("bind");
        return failed(NAME, error);
      }
    },
  };
}

function stateOf({ states }: Cycle): VolumeState | undefined {
  // Only this plugin writes the entry.
  return states.get(NAME) as VolumeState | undefined;
}

/** Undefined for a pod without claims. */
function claimsOf(
  pod: Pod,
  claims: AssumedObjects<PersistentVolumeClaim>,
  { listers }: Handle,
): PodClaims | Rejection | undefined {
  const names = claimNamesOf(pod);
  if (names.length === 0) return undefined;
  const bound: PersistentVolumeClaim[] = [];
  const delayed: PersistentVolumeClaim[] = [];
  let hasImmediate = false;
  for (const { name, isEphemeral } of names) {
    const claim = claims.get(name, pod.metadata?.namespace);
    const problem = problemOf(pod, name, isEphemeral, claim);
    if (problem !== undefined) return unresolvable(NAME, problem);
    if (claim === undefined) continue;
    if (isFullyBound(claim)) bound.push(claim);
    else if (isDelayed(claim, listers.storageClasses.get(classOfClaim(claim)))) delayed.push(claim);
    else hasImmediate = true;
  }
  return hasImmediate ? unresolvable(NAME, "pod has unbound immediate PersistentVolumeClaims") : { bound, delayed };
}

function problemOf(
  pod: Pod,
  name: string,
  isEphemeral: boolean,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  if (claim === undefined) {
    return isEphemeral
      ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
      : notFound("persistentvolumeclaim", name);
  }
  if (claim.status?.phase === "Lost") {
    return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec?.volumeName ?? ""}"`;
  }
  if (claim.metadata?.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
  return isEphemeral && !isOwnedByPod(pod, claim) ? notOwnedMessage(pod, claim) : undefined;
}

/** Claims that name their volume must have been bound before. */
function isDelayed({ spec }: PersistentVolumeClaim, storageClass: StorageClass | undefined): boolean {
  return !spec?.volumeName && waitsForConsumer(storageClass?.volumeBindingMode);
}

function migratedOf(csiNode: ApiObject | undefined): string | undefined {
  return getMember(csiNode?.metadata?.annotations, "storage.alpha.kubernetes.io/migrated-plugins");
}

/** The driver of an inline volume has ceased to publish capacities. */
function ignoresCapacityNow({ spec }: Pod, before: CSIDriver, after: CSIDriver): boolean {
  const usesDriver = (spec?.volumes ?? []).some(({ csi }) => csi !== undefined && csi.driver === after.metadata?.name);
  return usesDriver && before.spec?.storageCapacity === true && after.spec?.storageCapacity !== true;
}

/** The maximum size of a volume, or else the whole capacity. */
function hasGrown(before: CSIStorageCapacity, after: CSIStorageCapacity): boolean {
  const [old, next] = [before, after].map(({ maximumVolumeSize, capacity }) => maximumVolumeSize ?? capacity);
  return next !== undefined && (old === undefined || compareQuantityTexts(next, old) > 0);
}
