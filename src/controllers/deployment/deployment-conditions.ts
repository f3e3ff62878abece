/** Conditions and status of a deployment. */
import type { Deployment, DeploymentCondition, DeploymentStatus } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { formatTime } from "../../schema/value/time.ts";
import { maxUnavailable, replicasOf, sumReplicas, sumStatus } from "./deployment-numbers.ts";

const INT32_MAX = 2 ** 31 - 1;

type Conditions = readonly DeploymentCondition[];

export function findCondition(status: DeploymentStatus | undefined, type: string): DeploymentCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function createCondition(
  type: "Available" | "Progressing" | "ReplicaFailure",
  status: "True" | "False" | "Unknown",
  [reason, message]: readonly [reason: string, message: string],
  now: number,
): DeploymentCondition {
  const time = formatTime(now);
  return { type, status, lastUpdateTime: time, lastTransitionTime: time, reason, message };
}

/** Keeps a condition with the same status and reason, and the transition time of one with the same status. */
export function setCondition(conditions: Conditions = [], next: DeploymentCondition): Conditions {
  const current = conditions.find(({ type }) => type === next.type);
  if (current?.status === next.status && current.reason === next.reason) return conditions;
  const lastTransitionTime = current?.status === next.status ? current.lastTransitionTime : next.lastTransitionTime;
  return [...removeCondition(conditions, next.type), { ...next, lastTransitionTime }];
}

function removeCondition(conditions: Conditions, removed: string): Conditions {
  return conditions.filter(({ type }) => type !== removed);
}

export function hasProgressDeadline({ spec }: Deployment): boolean {
  const { progressDeadlineSeconds } = spec ?? {};
  return progressDeadlineSeconds !== undefined && progressDeadlineSeconds !== INT32_MAX;
}

export function hasHistoryLimit({ spec }: Deployment): boolean {
  return spec?.revisionHistoryLimit !== undefined && spec.revisionHistoryLimit !== INT32_MAX;
}

/** Undefined where a replica set reports no number. */
function sumTerminating(sets: readonly ReplicaSet[]): number | undefined {
  const numbers = sets.map(({ status }) => status?.terminatingReplicas);
  if (numbers.length === 0 || numbers.includes(undefined)) return undefined;
  return numbers.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

export function calculateStatus(
  deployment: Deployment,
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const available = sumStatus(all, "availableReplicas");
  const isAvailable = available >= replicasOf(deployment) - maxUnavailable(deployment);
  const condition = isAvailable
    ? createCondition("Available", "True", ["MinimumReplicasAvailable", "Deployment has minimum availability."], now)
    : createCondition(
        "Available",
        "False",
        ["MinimumReplicasUnavailable", "Deployment does not have minimum availability."],
        now,
      );
  const terminating = sumTerminating(all);
  return {
    observedGeneration: deployment.metadata?.generation ?? 0,
    ...(terminating === undefined ? {} : { terminatingReplicas: terminating }),
    replicas: sumStatus(all, "replicas"),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: sumStatus(all, "readyReplicas"),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sumReplicas(all) - available),
    collisionCount: deployment.status?.collisionCount,
    conditions: setCondition(deployment.status?.conditions, condition),
  };
}

/** The status during a rollout: with progress, the deadline, and failures of replica sets. */
export function calculateRolloutStatus(
  deployment: Deployment,
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const status = calculateStatus(deployment, all, current, now);
  const conditions = progressConditions(deployment, status, current, now);
  const failure = failureOf(all, current);
  return {
    ...status,
    conditions:
      failure === undefined ? removeCondition(conditions, "ReplicaFailure") : setCondition(conditions, failure),
  };
}

function progressConditions(
  deployment: Deployment,
  status: DeploymentStatus,
  current: ReplicaSet | undefined,
  now: number,
): Conditions {
  const conditions = status.conditions ?? [];
  if (!hasProgressDeadline(deployment)) return removeCondition(conditions, "Progressing");
  const progressing = findCondition(deployment.status, "Progressing");
  const isDone = status.replicas === status.updatedReplicas && progressing?.reason === "NewReplicaSetAvailable";
  if (isDone) return conditions;
  const subject =
    current === undefined ? `Deployment "${deployment.metadata?.name}"` : `ReplicaSet "${current.metadata?.name}"`;
  const progress = (value: "True" | "False", reason: string, what: string): DeploymentCondition =>
    createCondition("Progressing", value, [reason, `${subject} ${what}.`], now);
  if (isComplete(deployment, status)) {
    return setCondition(conditions, progress("True", "NewReplicaSetAvailable", "has successfully progressed"));
  }
  if (hasProgressed(deployment, status)) {
    const next = progress("True", "ReplicaSetUpdated", "is progressing");
    // Each progress starts the deadline again, also with the same reason.
    const lastTransitionTime =
      progressing?.status === "True" ? progressing.lastTransitionTime : next.lastTransitionTime;
    return setCondition(removeCondition(conditions, "Progressing"), { ...next, lastTransitionTime });
  }
  if (hasTimedOut(deployment, status, now)) {
    return setCondition(conditions, progress("False", "ProgressDeadlineExceeded", "has timed out progressing"));
  }
  return conditions;
}

export function isComplete(deployment: Deployment, status: DeploymentStatus | undefined): boolean {
  const replicas = replicasOf(deployment);
  return (
    (status?.updatedReplicas ?? 0) === replicas &&
    (status?.replicas ?? 0) === replicas &&
    (status?.availableReplicas ?? 0) === replicas &&
    (status?.observedGeneration ?? 0) >= (deployment.metadata?.generation ?? 0)
  );
}

function hasProgressed({ status: before }: Deployment, status: DeploymentStatus): boolean {
  const oldReplicas = (of: DeploymentStatus | undefined): number => (of?.replicas ?? 0) - (of?.updatedReplicas ?? 0);
  return (
    (status.updatedReplicas ?? 0) > (before?.updatedReplicas ?? 0) ||
    oldReplicas(status) < oldReplicas(before) ||
    (status.readyReplicas ?? 0) > (before?.readyReplicas ?? 0) ||
    (status.availableReplicas ?? 0) > (before?.availableReplicas ?? 0)
  );
}

function hasTimedOut(deployment: Deployment, status: DeploymentStatus, now: number): boolean {
  const condition = findCondition(status, "Progressing");
  if (condition === undefined || condition.reason === "NewReplicaSetAvailable") return false;
  if (condition.reason === "ProgressDeadlineExceeded") return true;
  return untilDeadline(deployment, condition, now) < 0;
}

/** Milliseconds; negative after the deadline. */
export function untilDeadline({ spec }: Deployment, { lastUpdateTime }: DeploymentCondition, now: number): number {
  const from = lastUpdateTime === undefined ? 0 : Date.parse(lastUpdateTime);
  return from + (spec?.progressDeadlineSeconds ?? 0) * 1000 - now;
}

function failureOf(all: readonly ReplicaSet[], current: ReplicaSet | undefined): DeploymentCondition | undefined {
  const failures = [...(current === undefined ? [] : [current]), ...all].flatMap(({ status }) =>
    (status?.conditions ?? []).filter(({ type }) => type === "ReplicaFailure"),
  );
  const failure = failures[0];
  return failure === undefined ? undefined : { ...failure, lastUpdateTime: failure.lastTransitionTime };
}
