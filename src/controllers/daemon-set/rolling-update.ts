/** The next step of a daemon set's rolling update. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { isPodAvailable } from "../workload/active-pods.ts";
import { isUpToDate } from "./daemon-pods.ts";
import { fitNode } from "./node-fit.ts";
import { type PlanContext, type PodPlan, surgeCount, unavailableCount } from "./plan-pods.ts";

/** The pods of a node that are not terminating: at most one of the current template and one old. */
interface NodePods {
  readonly node: string;
  readonly current: Pod | undefined;
  readonly old: Pod | undefined;
}

export function planRollingUpdate(context: PlanContext): PodPlan {
  const { daemonSet, nodes, podsByNode, hash } = context;
  const wanted = nodes.filter((node) => fitNode(node, daemonSet).shouldRun).map(({ metadata }) => metadata?.name ?? "");
  const unavailableMax = unavailableCount(daemonSet, wanted.length);
  const surgeMax = surgeCount(daemonSet, wanted.length);
  const names = new Set([...podsByNode.keys(), ...wanted]);
  const groups = [...names].map((node) => splitPods(node, podsByNode.get(node) ?? [], hash));
  if (surgeMax > 0) return planSurge(context, groups, surgeMax, new Set(wanted));
  // An update with neither surge nor unavailability could not proceed.
  return planReplacement(context, groups, Math.max(unavailableMax, wanted.length > 0 ? 1 : 0));
}

/** Undefined for several pods of one kind: the next sync deletes the surplus first. */
function splitPods(node: string, pods: readonly Pod[], hash: string): NodePods | undefined {
  const living = pods.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const current = living.filter((pod) => isUpToDate(pod, hash));
  const old = living.filter((pod) => !isUpToDate(pod, hash));
  if (current.length > 1 || old.length > 1) return undefined;
  return { node, current: current[0], old: old[0] };
}

/** Deletes old pods: those that are not available at once, others as unavailability permits. */
function planReplacement(
  context: PlanContext,
  groups: readonly (NodePods | undefined)[],
  unavailableMax: number,
): PodPlan {
  let unavailable = 0;
  const replaced: Pod[] = [];
  const candidates: Pod[] = [];
  for (const group of groups) {
    const pod = group?.current ?? group?.old;
    const isTransient =
      group === undefined || pod === undefined || (group.current !== undefined && group.old !== undefined);
    if (isTransient || !isAvailable(pod, context)) unavailable++;
    if (isTransient || group.old === undefined) continue;
    if (!isAvailable(group.old, context)) replaced.push(group.old);
    else if (unavailable < unavailableMax) candidates.push(group.old);
  }
  return { create: [], delete: [...replaced, ...candidates.slice(0, Math.max(0, unavailableMax - unavailable))] };
}

/** Creates pods beside old ones, and deletes an old one when its successor is available. */
function planSurge(
  context: PlanContext,
  groups: readonly (NodePods | undefined)[],
  surgeMax: number,
  wanted: ReadonlySet<string>,
): PodPlan {
  let surge = 0;
  let available = 0;
  const created: string[] = [];
  const candidates: string[] = [];
  const deleted: Pod[] = [];
  const misplaced: Pod[] = [];
  for (const group of groups) {
    if (group === undefined) {
      surge++;
      continue;
    }
    const { node, current, old } = group;
    if (isAvailable(old ?? current, context)) available++;
    if (old === undefined) continue;
    if (current !== undefined) {
      if (isAvailable(current, context)) deleted.push(old);
      else surge++;
    } else if (!wanted.has(node)) {
      (isAvailable(old, context) ? misplaced : deleted).push(old);
    } else if (!isAvailable(old, context)) created.push(node);
    else if (surge < surgeMax) candidates.push(node);
  }
  // Available pods on nodes that no longer fit go when others have taken their place.
  const surplus = Math.max(0, available - wanted.size);
  return {
    create: [...created, ...candidates.slice(0, Math.max(0, surgeMax - surge))],
    delete: [...deleted, ...misplaced.slice(0, surplus)],
  };
}

function isAvailable(pod: Pod | undefined, { daemonSet, now }: PlanContext): boolean {
  return pod !== undefined && isPodAvailable(pod, daemonSet.spec?.minReadySeconds ?? 0, now);
}
