/** Which pods a daemon set needs and which must go, on each node. */
import type { DaemonSet } from "../../api/apps/daemon-set/schema.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { isPodAvailable, isPodReady } from "../workload/active-pods.ts";
import { scaledValue } from "../workload/scaled-value.ts";
import { isUpToDate, sortOldestFirst } from "./daemon-pods.ts";
import { fitNode } from "./node-fit.ts";

export interface PodPlan {
  /** Names of nodes that get a pod. */
  readonly create: readonly string[];
  readonly delete: readonly Pod[];
}

export interface PlanContext {
  readonly daemonSet: DaemonSet;
  readonly nodes: readonly Node[];
  /** The value of the label of pods with the current template. */
  readonly hash: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly podsByNode: ReadonlyMap<string, readonly Pod[]>;
}

export interface FailedPodHandler {
  /** Whether the pod may be deleted now; records an event then. */
  failed(pod: Pod, node: string): boolean;
  succeeded(pod: Pod, node: string): void;
}

export function planPods(context: PlanContext, handler: FailedPodHandler): PodPlan {
  const { nodes, podsByNode } = context;
  const plans = nodes.map((node) => planNode(node, context, handler));
  const names = new Set(nodes.map(({ metadata }) => metadata?.name));
  // Pods that wait for a node that is gone: no other controller deletes them.
  const lost = [...podsByNode]
    .filter(([node]) => !names.has(node))
    .flatMap(([, pods]) => pods.filter(({ spec }) => (spec?.nodeName ?? "") === ""));
  return {
    create: plans.flatMap(({ create }) => create),
    delete: [...plans.flatMap((plan) => plan.delete), ...lost],
  };
}

function planNode(node: Node, context: PlanContext, handler: FailedPodHandler): PodPlan {
  const { daemonSet, podsByNode } = context;
  const { shouldRun, shouldContinue } = fitNode(node, daemonSet);
  const name = node.metadata?.name ?? "";
  const pods = podsByNode.get(name);
  if (pods === undefined) return { create: shouldRun ? [name] : [], delete: [] };
  const living = pods.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  if (!shouldContinue) return { create: [], delete: living };
  const ended = living.filter((pod) => isEndedAndDeletable(pod, name, handler));
  const running = living.filter(({ status }) => status?.phase !== "Failed" && status?.phase !== "Succeeded");
  if (!allowsSurge(daemonSet)) return { create: [], delete: [...ended, ...sortOldestFirst(running).slice(1)] };
  if (running.length <= 1) return { create: running.length === 0 && shouldRun ? [name] : [], delete: ended };
  return { create: [], delete: [...ended, ...surplusOfSurge(running, context)] };
}

function isEndedAndDeletable(pod: Pod, node: string, handler: FailedPodHandler): boolean {
  if (pod.status?.phase === "Failed") return handler.failed(pod, node);
  if (pod.status?.phase !== "Succeeded") return false;
  handler.succeeded(pod, node);
  return true;
}

/** Two pods may run during a surge: the oldest of the current template until it is available, and a ready old one. */
function surplusOfSurge(running: readonly Pod[], { daemonSet, hash, now }: PlanContext): readonly Pod[] {
  const sorted = sortOldestFirst(running);
  const current = sorted.find((pod) => isUpToDate(pod, hash));
  const old = sorted.find((pod) => !isUpToDate(pod, hash));
  const surplus = sorted.filter((pod) => pod !== current && pod !== old);
  if (current === undefined || old === undefined) return surplus;
  const isReplaced = !isPodReady(old) || isPodAvailable(current, daemonSet.spec?.minReadySeconds ?? 0, now);
  return isReplaced ? [...surplus, old] : surplus;
}

export function allowsSurge(daemonSet: DaemonSet): boolean {
  return surgeCount(daemonSet, 1) > 0;
}

export function surgeCount({ spec }: DaemonSet, nodes: number): number {
  const { type, rollingUpdate } = spec?.updateStrategy ?? {};
  return type === "RollingUpdate" ? scaledValue(rollingUpdate?.maxSurge ?? 0, nodes, Math.ceil) : 0;
}

export function unavailableCount({ spec }: DaemonSet, nodes: number): number {
  const { type, rollingUpdate } = spec?.updateStrategy ?? {};
  return type === "RollingUpdate" ? scaledValue(rollingUpdate?.maxUnavailable ?? 0, nodes, Math.ceil) : 0;
}
