/**
 * One sync of a stateful set: replaces missing and ended pods, scales down, and updates the pod with the highest
 * ordinal, or several where `maxUnavailable` allows it. `OrderedReady` makes one step and waits; `Parallel` makes all
 * steps but those of an update at once.
 */
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import type { StatefulSet, StatefulSetStatus } from "../../api/apps/stateful-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { statusCodeOf } from "../api-errors.ts";
import { isPodAvailable } from "../workload/active-pods.ts";
import { templateOf } from "../workload/controller-history.ts";
import { scaledValue } from "../workload/scaled-value.ts";
import { slowStart } from "../workload/slow-start.ts";
import type { StatefulPodControl } from "./stateful-pod-control.ts";
import {
  allowsBurst,
  firstOrdinal,
  hasEnded,
  isCreated,
  isHealthy,
  isInRange,
  isRunningAndReady,
  isTerminating,
  matchesIdentity,
  matchesStorage,
  newPod,
  ordinalOf,
  replicasOf,
  revisionOf,
} from "./stateful-pods.ts";
import type { SetRevisions } from "./stateful-set-revisions.ts";
import { type Counters, countPods, type RevisionNames } from "./stateful-set-status.ts";

/** The maximum of pods that one sync creates: the next one goes on when they are seen. */
const CREATIONS_MAX = 500;

export interface SyncContext {
  readonly set: StatefulSet;
  readonly revisions: SetRevisions;
  readonly control: StatefulPodControl;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Whether `maxUnavailable` applies: the gate MaxUnavailableStatefulSet. */
  readonly allowsMaxUnavailable: boolean;
  readonly signal: AbortSignal;
}

export interface SyncResult {
  readonly status: StatefulSetStatus;
  /** The status is valid also after an error. */
  readonly failure?: { readonly error: unknown };
}

/** Whether a step was made that the next ones wait for. */
type Step = "proceed" | "wait";

export async function syncStatefulSet(context: SyncContext, pods: readonly Pod[]): Promise<SyncResult> {
  const { set } = context;
  const { pods: replicas, isPartial } = replicaPods(context, pods);
  // A pod whose name has no ordinal is ignored.
  const condemned = pods
    .filter((pod) => ordinalOf(pod) >= 0 && !isInRange(set, pod))
    .sort((a, b) => ordinalOf(b) - ordinalOf(a));
  if (set.metadata?.deletionTimestamp !== undefined) return { status: statusOf(context, countAll(context, pods)) };
  let deleted = 0;
  let failure: SyncResult["failure"];
  try {
    if ((await establishReplicas(context, replicas, condemned)) === "proceed" && updatesPods(set) && !isPartial) {
      if (context.allowsMaxUnavailable) await updateSeveral(context, replicas, () => deleted++);
      else if (await updateOne(context, replicas)) deleted++;
    }
  } catch (error) {
    failure = { error };
  }
  const counters = countAll(context, [...replicas, ...condemned]);
  const currentReplicas = Math.max(0, counters.currentReplicas - deleted);
  const status = statusOf(context, { ...counters, currentReplicas });
  return failure === undefined ? { status } : { status, failure };
}

function countAll({ set, revisions, now }: SyncContext, pods: readonly Pod[]): Counters {
  return countPods(set, pods, namesOf(revisions), now);
}

function namesOf({ current, update }: SetRevisions): RevisionNames {
  return { current: nameOfRevision(current), update: nameOfRevision(update) };
}

function nameOfRevision({ metadata }: ControllerRevision): string {
  return metadata?.name ?? "";
}

function statusOf({ set, revisions }: SyncContext, counters: Counters): StatefulSetStatus {
  const { current, update } = namesOf(revisions);
  return {
    ...counters,
    observedGeneration: set.metadata?.generation ?? 0,
    currentRevision: current,
    updateRevision: update,
    collisionCount: revisions.collisionCount,
  };
}

interface Replicas {
  /** From the first ordinal on; missing ones as they are to be created. */
  readonly pods: readonly Pod[];
  /** More are missing than one sync creates. */
  readonly isPartial: boolean;
}

function replicaPods(context: SyncContext, pods: readonly Pod[]): Replicas {
  const { set } = context;
  const existing = new Map(pods.filter((pod) => isInRange(set, pod)).map((pod) => [ordinalOf(pod), pod]));
  // An ordered set waits for the first one that is missing.
  const missingMax = allowsBurst(set) ? CREATIONS_MAX : 1;
  const found: Pod[] = [];
  let missing = 0;
  let index = 0;
  for (; index < replicasOf(set) && missing < missingMax; index++) {
    const ordinal = firstOrdinal(set) + index;
    const pod = existing.get(ordinal);
    existing.delete(ordinal);
    if (pod === undefined) missing++;
    found.push(pod ?? newVersionedPod(context, ordinal, index));
  }
  const others = [...existing.values()].sort((a, b) => ordinalOf(a) - ordinalOf(b));
  return { pods: [...found, ...others], isPartial: found.length + others.length < replicasOf(set) };
}

/** Below the partition, and below the pods updated already, a pod is created with the current revision. */
function newVersionedPod({ set, revisions }: SyncContext, ordinal: number, index: number): Pod {
  const { type, rollingUpdate } = set.spec?.updateStrategy ?? {};
  const kept = rollingUpdate === undefined ? (set.status?.currentReplicas ?? 0) : (rollingUpdate.partition ?? 0);
  const revision = type === "RollingUpdate" && index < kept ? revisions.current : revisions.update;
  return newPod(set, templateOf(revision), ordinal, nameOfRevision(revision));
}

async function establishReplicas(
  context: SyncContext,
  replicas: readonly Pod[],
  condemned: readonly Pod[],
): Promise<Step> {
  const { set, control, signal } = context;
  // The lowest unhealthy pod: ordered scale down proceeds only if it is the next to go.
  const unhealthy = replicas.find((pod) => !isHealthy(pod)) ?? condemned.findLast((pod) => !isHealthy(pod));
  const fixClaims = async (pod: Pod): Promise<Step> => {
    if (!control.claimsHaveWantedOwners(set, pod)) await control.updateClaimOwners(set, pod, signal);
    return "proceed";
  };
  if ((await runForAll(set, replicas, (pod) => processReplica(context, pod))) === "wait") return "wait";
  if ((await runForAll(set, condemned, fixClaims)) === "wait") return "wait";
  return await runForAll(set, condemned, (pod) => processCondemned(context, pod, unhealthy));
}

async function runForAll(set: StatefulSet, pods: readonly Pod[], run: (pod: Pod) => Promise<Step>): Promise<Step> {
  if (allowsBurst(set)) {
    let next = 0;
    const { error } = await slowStart(pods.length, async () => {
      const pod = pods[next++];
      if (pod !== undefined) await run(pod);
    });
    if (error !== undefined) throw error;
    return "proceed";
  }
  for (const pod of pods) if ((await run(pod)) === "wait") return "wait";
  return "proceed";
}

async function processReplica(context: SyncContext, pod: Pod): Promise<Step> {
  const { set, control, signal } = context;
  const isOrdered = !allowsBurst(set);
  if (hasEnded(pod)) {
    // Its successor has the same name: it is created when this one is gone.
    if (!isTerminating(pod)) await control.delete(set, pod, signal);
    return "wait";
  }
  if (!isCreated(pod)) {
    if (control.hasStaleClaim(set, pod)) return "wait";
    await control.create(set, pod, signal);
    return isOrdered ? "wait" : "proceed";
  }
  if (pod.status?.phase === "Pending") await control.createMissingClaimsWithOwners(set, pod, signal);
  if (isOrdered && (isTerminating(pod) || !isRunningAndReady(pod) || !isAvailable(context, pod))) return "wait";
  const isCurrent = matchesIdentity(set, pod) && matchesStorage(set, pod) && control.claimsHaveWantedOwners(set, pod);
  if (!isCurrent) await control.update(set, pod, signal);
  return "proceed";
}

async function processCondemned(context: SyncContext, pod: Pod, unhealthy: Pod | undefined): Promise<Step> {
  const { set, control, signal } = context;
  const isOrdered = !allowsBurst(set);
  if (isTerminating(pod)) return isOrdered ? "wait" : "proceed";
  if (isOrdered && pod !== unhealthy && (!isRunningAndReady(pod) || !isAvailable(context, pod))) return "wait";
  await control.delete(set, pod, signal);
  return "wait";
}

function isAvailable({ set, now }: SyncContext, pod: Pod): boolean {
  return isPodAvailable(pod, set.spec?.minReadySeconds ?? 0, now);
}

function updatesPods({ spec }: StatefulSet): boolean {
  return spec?.updateStrategy?.type !== "OnDelete";
}

/** Deletes the pod with the highest ordinal that is not up to date, if all above it are healthy. */
async function updateOne(context: SyncContext, replicas: readonly Pod[]): Promise<boolean> {
  const { set, revisions } = context;
  const partition = set.spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
  for (const pod of replicas.slice(partition).reverse()) {
    if (revisionOf(pod) !== nameOfRevision(revisions.update) && !isTerminating(pod)) {
      await deleteOutdated(context, pod);
      return true;
    }
    if (!isHealthy(pod)) return false;
  }
  return false;
}

/** Deletes outdated pods, the highest ordinals first, until as many are unavailable as may be. */
async function updateSeveral(context: SyncContext, replicas: readonly Pod[], onDeleted: () => void): Promise<void> {
  const { set, revisions } = context;
  const { partition = 0, maxUnavailable = 1 } = set.spec?.updateStrategy?.rollingUpdate ?? {};
  // A small percentage is none: the update could not proceed.
  const limit = Math.max(1, scaledValue(maxUnavailable, replicasOf(set), Math.floor));
  let left = limit - replicas.filter((pod) => !isHealthy(pod)).length;
  for (const pod of replicas.slice(partition).reverse()) {
    if (left <= 0) return;
    if (revisionOf(pod) === nameOfRevision(revisions.update) || isTerminating(pod)) continue;
    await deleteOutdated(context, pod);
    onDeleted();
    left--;
  }
}

async function deleteOutdated({ set, control, signal }: SyncContext, pod: Pod): Promise<void> {
  await control.delete(set, pod, signal).catch((error: unknown) => {
    if (statusCodeOf(error) !== 404) throw error;
  });
}
