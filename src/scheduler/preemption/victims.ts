/** Which pods of a node must leave, so that another one fits. */
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { parseInstant } from "../../schema/value/time.ts";
import { compileSelector } from "../cache/label-match.ts";
import type { NodeInfo } from "../cache/node-info.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import { addPod, cloneFilters, removePod } from "../framework/framework.ts";
import type { NodeFilter } from "../framework/plugin.ts";
import { type Rejection, unresolvable } from "../framework/rejection.ts";

export interface Victims {
  readonly node: NodeInfo;
  /** From the most to the least important. */
  readonly pods: readonly PodInfo[];
  /** How many of the pods a disruption budget protects. */
  readonly violations: number;
}

/** Filters with the nominated pods of the node. */
type Filter = (filters: ReadonlyMap<string, NodeFilter>, node: NodeInfo) => Rejection | undefined;

/** The fewest victims: the most important pods are kept first, those that budgets protect before the others. */
export function selectVictims(
  pod: PodInfo,
  node: NodeInfo,
  filters: ReadonlyMap<string, NodeFilter>,
  budgets: readonly PodDisruptionBudget[],
  filter: Filter,
): Victims | Rejection {
  const lower = [...node.pods.values()].filter(({ priority }) => priority < pod.priority);
  if (lower.length === 0) return unresolvable("DefaultPreemption", "No preemption victims found for incoming pod");
  const copy = node.clone();
  const copies = cloneFilters(filters);
  for (const victim of lower) removePod(copies, victim, copy);
  const rejection = filter(copies, copy);
  if (rejection !== undefined) return rejection;
  const victims: PodInfo[] = [];
  const reprieve = (candidate: PodInfo): boolean => {
    addPod(copies, candidate, copy);
    if (filter(copies, copy) === undefined) return true;
    removePod(copies, candidate, copy);
    victims.push(candidate);
    return false;
  };
  const { violating, others } = splitByBudgets(lower.sort(compareImportance), budgets);
  let violations = 0;
  for (const candidate of violating) if (!reprieve(candidate)) violations++;
  for (const candidate of others) reprieve(candidate);
  return { node, pods: victims.sort(compareImportance), violations };
}

/** A higher priority first, then the earlier start. */
export function compareImportance(a: PodInfo, b: PodInfo): number {
  return a.priority === b.priority ? startOf(a) - startOf(b) : b.priority - a.priority;
}

/** In milliseconds since 1970; pods that have not started count as the latest. */
export function startOf({ pod }: PodInfo): number {
  const instant = parseInstant(pod.status?.startTime ?? "");
  return instant === undefined ? Number.MAX_SAFE_INTEGER : instant.seconds * 1000 + instant.nanos / 1e6;
}

/** A budget protects a pod if it allows no further disruption. */
function splitByBudgets(
  pods: readonly PodInfo[],
  budgets: readonly PodDisruptionBudget[],
): { readonly violating: readonly PodInfo[]; readonly others: readonly PodInfo[] } {
  const compiled = budgets.map(({ metadata, spec, status }) => ({
    namespace: metadata?.namespace ?? "",
    selector: compileSelector(spec?.selector),
    disrupted: status?.disruptedPods ?? {},
    left: status?.disruptionsAllowed ?? 0,
  }));
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const pod of pods) {
    let isViolating = false;
    if (Object.keys(pod.labels).length > 0) {
      for (const budget of compiled) {
        if (budget.namespace !== pod.namespace || budget.selector.isEmpty) continue;
        // The server has counted pods that are listed as disrupted already.
        if (!budget.selector.matches(pod.labels) || Object.hasOwn(budget.disrupted, pod.name)) continue;
        budget.left--;
        if (budget.left < 0) isViolating = true;
      }
    }
    (isViolating ? violating : others).push(pod);
  }
  return { violating, others };
}
