/** How many replicas a deployment and its replica sets may have. */
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { scaledValue } from "../workload/scaled-value.ts";

export const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
export const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";
const INT32_MAX = 2 ** 31 - 1;

export function replicasOf(object: Deployment | ReplicaSet): number {
  return object.spec?.replicas ?? 1;
}

export function sumReplicas(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + replicasOf(set), 0);
}

export function sumStatus(
  sets: readonly ReplicaSet[],
  counter: "replicas" | "readyReplicas" | "availableReplicas",
): number {
  return sets.reduce((sum, { status }) => sum + (status?.[counter] ?? 0), 0);
}

export function isRollingUpdate({ spec }: Deployment): boolean {
  return spec?.strategy?.type === "RollingUpdate";
}

export function maxSurge(deployment: Deployment): number {
  return isRollingUpdate(deployment) ? limitsOf(deployment).surge : 0;
}

export function maxUnavailable(deployment: Deployment): number {
  const replicas = replicasOf(deployment);
  if (!isRollingUpdate(deployment) || replicas === 0) return 0;
  return Math.min(limitsOf(deployment).unavailable, replicas);
}

/** Percentages of surge round up, those of unavailability down; a rollout could not proceed if both were 0. */
function limitsOf(deployment: Deployment): { readonly surge: number; readonly unavailable: number } {
  const { maxSurge: surgeText = 0, maxUnavailable: unavailableText = 0 } =
    deployment.spec?.strategy?.rollingUpdate ?? {};
  const surge = scaledValue(surgeText, replicasOf(deployment), Math.ceil);
  const unavailable = scaledValue(unavailableText, replicasOf(deployment), Math.floor);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** The size of the new replica set that the surge allows. */
export function newReplicaSetSize(deployment: Deployment, all: readonly ReplicaSet[], current: number): number {
  const replicas = replicasOf(deployment);
  if (!isRollingUpdate(deployment)) return replicas;
  const free = replicas + maxSurge(deployment) - sumReplicas(all);
  return free <= 0 ? current : current + Math.min(free, replicas - current);
}

/** The new sizes of active replica sets when a deployment is scaled during a rollout: each gets its share. */
export function proportionalSizes(
  deployment: Deployment,
  active: readonly ReplicaSet[],
): readonly { readonly set: ReplicaSet; readonly size: number }[] {
  const replicas = replicasOf(deployment);
  const allowed = replicas > 0 ? replicas + maxSurge(deployment) : 0;
  const toAdd = allowed - sumReplicas(active);
  const sorted = [...active].sort((a, b) => replicasOf(b) - replicasOf(a) || byAge(a, b, toAdd < 0));
  let added = 0;
  const sizes = sorted.map((set) => {
    const share = proportionOf(set, deployment, toAdd, added);
    added += share;
    return { set, size: replicasOf(set) + share };
  });
  const [largest, ...rest] = sizes;
  if (largest === undefined) return [];
  // The largest gets what rounding left.
  return [{ set: largest.set, size: Math.max(0, largest.size + toAdd - added) }, ...rest];
}

/** Among replica sets of one size, scaling up begins with the newest and scaling down with the oldest. */
function byAge(a: ReplicaSet, b: ReplicaSet, oldestFirst: boolean): number {
  const [timeA = "", timeB = ""] = [a.metadata?.creationTimestamp, b.metadata?.creationTimestamp];
  const [nameA = "", nameB = ""] = [a.metadata?.name, b.metadata?.name];
  const older = timeA === timeB ? (nameA < nameB ? -1 : 1) : timeA < timeB ? -1 : 1;
  return oldestFirst ? older : -older;
}

function proportionOf(set: ReplicaSet, deployment: Deployment, toAdd: number, added: number): number {
  if (replicasOf(set) === 0 || toAdd === 0 || toAdd === added) return 0;
  const fraction = fractionOf(set, deployment);
  return toAdd > 0 ? Math.min(fraction, toAdd - added) : Math.max(fraction, toAdd - added);
}

function fractionOf(set: ReplicaSet, deployment: Deployment): number {
  const replicas = replicasOf(deployment);
  const size = replicasOf(set);
  if (replicas === 0) return -size;
  const before = annotatedNumber(set, MAX_REPLICAS) || deployment.status?.replicas || 0;
  if (before === 0) return 0;
  return Math.round((size * (replicas + maxSurge(deployment))) / before) - size;
}

/** Undefined without a valid annotation. */
export function annotatedNumber({ metadata }: ReplicaSet, annotation: string): number | undefined {
  const text = metadata?.annotations?.[annotation];
  const number = text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
  return number !== undefined && number <= INT32_MAX ? number : undefined;
}
