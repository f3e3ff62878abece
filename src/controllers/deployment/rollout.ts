/** The steps of a deployment: rolling update, recreation, scaling, history. Each sync makes one step. */
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { compareCreation } from "../workload/object-keys.ts";
import {
  calculateRolloutStatus,
  calculateStatus,
  createCondition,
  findCondition,
  hasHistoryLimit,
  hasProgressDeadline,
  isComplete,
  setCondition,
  untilDeadline,
} from "./deployment-conditions.ts";
import {
  annotatedNumber,
  DESIRED_REPLICAS,
  isRollingUpdate,
  maxUnavailable,
  newReplicaSetSize,
  proportionalSizes,
  replicasOf,
  sumReplicas,
  sumStatus,
} from "./deployment-numbers.ts";
import type { DeploymentSync, Revisions } from "./deployment-sync.ts";
import { revisionOf } from "./revisions.ts";
import { rollBack, rollbackRevision } from "./rollback.ts";

/** The times of conditions are whole seconds: one more, so that the deadline has passed then. */
const DEADLINE_SKEW_MS = 1000;

/** Resolves with the milliseconds until the next sync that no event causes; undefined for none. */
export async function syncDeployment(
  sync: DeploymentSync,
  sets: readonly ReplicaSet[],
  podsOf: (set: ReplicaSet) => readonly Pod[],
): Promise<number | undefined> {
  if (sync.deployment.metadata?.deletionTimestamp !== undefined) {
    await syncStatus(sync, await sync.syncRevisions(sets, false));
    return undefined;
  }
  await syncPausedCondition(sync);
  if (sync.deployment.spec?.paused === true) {
    await syncScale(sync, await sync.syncRevisions(sets, false));
    return undefined;
  }
  const rollback = rollbackRevision(sync.deployment);
  if (rollback !== undefined) {
    await rollBack(sync, sets, rollback);
    return undefined;
  }
  const revisions = await sync.syncRevisions(sets, false);
  if (isScaled(sync, allOf(revisions))) {
    await syncScale(sync, revisions);
    return undefined;
  }
  const rolled = isRollingUpdate(sync.deployment)
    ? await rollUpdate(sync, revisions.current === undefined ? await sync.syncRevisions(sets, true) : revisions)
    : await recreate(sync, sets, revisions, podsOf);
  return await syncRolloutStatus(sync, rolled);
}

async function syncPausedCondition(sync: DeploymentSync): Promise<void> {
  const { deployment, now } = sync;
  if (!hasProgressDeadline(deployment)) return;
  const reason = findCondition(deployment.status, "Progressing")?.reason;
  const paused = deployment.spec?.paused === true;
  if (reason === "ProgressDeadlineExceeded" || paused === (reason === "DeploymentPaused")) return;
  const text = paused
    ? (["DeploymentPaused", "Deployment is paused"] as const)
    : (["DeploymentResumed", "Deployment is resumed"] as const);
  const condition = createCondition("Progressing", "Unknown", text, now);
  const conditions = setCondition(deployment.status?.conditions, condition);
  await sync.writeStatus({ ...deployment.status, conditions });
}

function isScaled(sync: DeploymentSync, sets: readonly ReplicaSet[]): boolean {
  const replicas = replicasOf(sync.deployment);
  return activeOf(sets).some((set) => (annotatedNumber(set, DESIRED_REPLICAS) ?? replicas) !== replicas);
}

function allOf({ current, old }: Revisions): readonly ReplicaSet[] {
  return current === undefined ? old : [...old, current];
}

function activeOf(sets: readonly ReplicaSet[]): readonly ReplicaSet[] {
  return sets.filter((set) => replicasOf(set) > 0);
}

async function syncScale(sync: DeploymentSync, revisions: Revisions): Promise<void> {
  const scaled = await scaleAll(sync, revisions);
  const isRolledBack = rollbackRevision(sync.deployment) !== undefined;
  if (sync.deployment.spec?.paused === true && !isRolledBack) await cleanUpHistory(sync, scaled.old);
  await syncStatus(sync, scaled);
}

async function syncStatus(sync: DeploymentSync, revisions: Revisions): Promise<void> {
  await sync.writeStatus(calculateStatus(sync.deployment, allOf(revisions), revisions.current, sync.now));
}

/** Scales the only active replica set; during a rollout each one in proportion. */
async function scaleAll(sync: DeploymentSync, revisions: Revisions): Promise<Revisions> {
  const replicas = replicasOf(sync.deployment);
  const only = findActiveOrLatest(revisions);
  if (only !== undefined) {
    if (replicasOf(only) === replicas) return revisions;
    return replaceSet(revisions, only, await sync.scale(only, replicas));
  }
  if (isSaturated(revisions.current, replicas)) return (await scaleDownAll(sync, revisions)).revisions;
  if (!isRollingUpdate(sync.deployment)) return revisions;
  let scaled = revisions;
  for (const { set, size } of proportionalSizes(sync.deployment, activeOf(allOf(revisions)))) {
    scaled = replaceSet(scaled, set, await sync.scale(set, size));
  }
  return scaled;
}

/** Undefined if there are several active replica sets. */
function findActiveOrLatest(revisions: Revisions): ReplicaSet | undefined {
  const active = activeOf(allOf(revisions));
  if (active.length > 1) return undefined;
  return active[0] ?? revisions.current ?? [...revisions.old].sort(compareCreation).at(-1);
}

function isSaturated(set: ReplicaSet | undefined, replicas: number): boolean {
  return (
    set !== undefined &&
    replicasOf(set) === replicas &&
    annotatedNumber(set, DESIRED_REPLICAS) === replicas &&
    (set.status?.availableReplicas ?? 0) === replicas
  );
}

function replaceSet({ current, old }: Revisions, before: ReplicaSet, after: ReplicaSet): Revisions {
  return { current: current === before ? after : current, old: old.map((set) => (set === before ? after : set)) };
}

interface ScaledDown {
  readonly revisions: Revisions;
  readonly count: number;
}

async function scaleDownAll(sync: DeploymentSync, revisions: Revisions): Promise<ScaledDown> {
  return await scaleDownOld(sync, revisions, () => Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
}

/** Scales old replica sets down, the oldest first: each by at most `limitOf`, all by at most `countMax`. */
async function scaleDownOld(
  sync: DeploymentSync,
  revisions: Revisions,
  limitOf: (set: ReplicaSet) => number,
  countMax: number,
): Promise<ScaledDown> {
  let scaled = revisions;
  let count = 0;
  for (const set of [...activeOf(revisions.old)].sort(compareCreation)) {
    const step = Math.min(replicasOf(set), limitOf(set), countMax - count);
    if (step <= 0) continue;
    scaled = replaceSet(scaled, set, await sync.scale(set, replicasOf(set) - step));
    count += step;
  }
  return { revisions: scaled, count };
}

/** Scales the new replica set up, or old ones down, or cleans up. */
async function rollUpdate(sync: DeploymentSync, revisions: Revisions): Promise<Revisions> {
  const { current } = revisions;
  if (current === undefined) return revisions;
  const size = newReplicaSetSize(sync.deployment, allOf(revisions), replicasOf(current));
  const wanted = replicasOf(current) > replicasOf(sync.deployment) ? replicasOf(sync.deployment) : size;
  if (wanted !== replicasOf(current)) return replaceSet(revisions, current, await sync.scale(current, wanted));
  const { revisions: scaled, count } = await rollDown(sync, revisions, current);
  if (count === 0) await cleanUpIfComplete(sync, revisions.old);
  return scaled;
}

async function rollDown(sync: DeploymentSync, revisions: Revisions, current: ReplicaSet): Promise<ScaledDown> {
  const all = allOf(revisions);
  const availableMin = replicasOf(sync.deployment) - maxUnavailable(sync.deployment);
  const newUnavailable = replicasOf(current) - availableOf(current);
  const countMax = sumReplicas(all) - availableMin - newUnavailable;
  if (sumReplicas(revisions.old) === 0 || countMax <= 0) return { revisions, count: 0 };
  const outdated = activeOf(revisions.old).find((set) => availableOf(set) > replicasOf(set));
  // Its pods would be counted as available though they are being deleted.
  if (outdated !== undefined) throw new Error(`the status of replica set ${outdated.metadata?.name} is not up to date`);
  // Replicas that are not available go first: they make the rollout halt otherwise.
  const unhealthy = (set: ReplicaSet): number => replicasOf(set) - availableOf(set);
  const cleaned = await scaleDownOld(sync, revisions, unhealthy, countMax);
  // Old replica sets without replicas are left out: what their late status counts as available is being deleted.
  const counted = new Set([current, ...activeOf(revisions.old)].map(({ metadata }) => metadata?.name));
  const available = allOf(cleaned.revisions).filter(({ metadata }) => counted.has(metadata?.name));
  const surplus = sumStatus(available, "availableReplicas") - availableMin;
  const scaled = await scaleDownOld(sync, cleaned.revisions, replicasOf, surplus);
  return { revisions: scaled.revisions, count: cleaned.count + scaled.count };
}

function availableOf({ status }: ReplicaSet): number {
  return status?.availableReplicas ?? 0;
}

/** Creates the new replica set only after all old pods have ended. */
async function recreate(
  sync: DeploymentSync,
  sets: readonly ReplicaSet[],
  revisions: Revisions,
  podsOf: (set: ReplicaSet) => readonly Pod[],
): Promise<Revisions> {
  const { revisions: scaled, count } = await scaleDownAll(sync, revisions);
  if (count > 0 || hasOldPods(revisions.old, podsOf)) return scaled;
  const created = scaled.current === undefined ? await sync.syncRevisions(sets, true) : scaled;
  const { current } = created;
  if (current === undefined) return created;
  const replicas = replicasOf(sync.deployment);
  const done =
    replicasOf(current) === replicas ? created : replaceSet(created, current, await sync.scale(current, replicas));
  await cleanUpIfComplete(sync, done.old);
  return done;
}

function hasOldPods(old: readonly ReplicaSet[], podsOf: (set: ReplicaSet) => readonly Pod[]): boolean {
  if (sumStatus(old, "replicas") > 0) return true;
  return old.some((set) => podsOf(set).some(({ status }) => !["Succeeded", "Failed"].includes(status?.phase ?? "")));
}

async function cleanUpIfComplete(sync: DeploymentSync, old: readonly ReplicaSet[]): Promise<void> {
  if (isComplete(sync.deployment, sync.deployment.status)) await cleanUpHistory(sync, old);
}

/** Deletes the lowest revisions above the history limit; sets that may have pods stay. */
async function cleanUpHistory(sync: DeploymentSync, old: readonly ReplicaSet[]): Promise<void> {
  const { deployment } = sync;
  if (!hasHistoryLimit(deployment)) return;
  const living = old.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const surplus = living.length - (deployment.spec?.revisionHistoryLimit ?? 0);
  if (surplus <= 0) return;
  const sorted = [...living].sort((a, b) => Number(revisionOf(a) - revisionOf(b)) || compareCreation(a, b));
  for (const set of sorted.slice(0, surplus)) {
    const isObserved = (set.metadata?.generation ?? 0) <= (set.status?.observedGeneration ?? 0);
    if (replicasOf(set) === 0 && (set.status?.replicas ?? 0) === 0 && isObserved) await sync.deleteSet(set);
  }
}

async function syncRolloutStatus(sync: DeploymentSync, revisions: Revisions): Promise<number | undefined> {
  const { deployment, now } = sync;
  const status = calculateRolloutStatus(deployment, allOf(revisions), revisions.current, now);
  if (await sync.writeStatus(status)) return undefined;
  const progressing = findCondition(status, "Progressing");
  if (!hasProgressDeadline(deployment) || progressing === undefined) return undefined;
  if (isComplete(deployment, status) || progressing.reason === "ProgressDeadlineExceeded") return undefined;
  return Math.max(0, untilDeadline(deployment, progressing, now)) + DEADLINE_SKEW_MS;
}
