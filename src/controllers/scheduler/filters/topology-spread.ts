/**
 * `topologySpreadConstraints` that must hold (`DoNotSchedule`): no part of the topology gets too far ahead of the rest.
 */
import type { TopologySpreadConstraint } from "../../../api/core/pod-spec/affinity.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { matchesLabels, requirementsOf } from "../../../api/meta/selectors/selector.ts";
import type { NodeInfo } from "../node-info.ts";
import type { Filter } from "./filter.ts";
import { nodeAffinity } from "./node-affinity.ts";
import { sameLabels } from "./pod-affinity.ts";
import { taints } from "./taints.ts";

const MISMATCH = "node(s) didn't match pod topology spread constraints";

export const topologySpread: Filter = (pod, info, all) => {
  const constraints = (pod.spec?.topologySpreadConstraints ?? []).filter(
    (c) => c.whenUnsatisfiable === "DoNotSchedule",
  );
  for (const constraint of constraints) {
    const domain = info.node.metadata?.labels?.[constraint.topologyKey];
    if (domain === undefined) return [`${MISMATCH} (missing required label)`];
    if (skew(pod, constraint, domain, all) > constraint.maxSkew) return [MISMATCH];
  }
  return [];
};

/** How far `domain` would be ahead of the emptiest one with the pod in it. */
function skew(pod: Pod, constraint: TopologySpreadConstraint, domain: string, all: readonly NodeInfo[]): number {
  const counted = selector(pod, constraint);
  const counts = new Map<string, number>();
  for (const info of all) {
    const at = info.node.metadata?.labels?.[constraint.topologyKey];
    if (at === undefined || !isEligible(pod, constraint, info, all)) continue;
    counts.set(at, (counts.get(at) ?? 0) + info.pods.filter(counted).length);
  }
  const tooFew = counts.size < (constraint.minDomains ?? 1);
  const least = tooFew ? 0 : Math.min(...counts.values());
  return (counts.get(domain) ?? 0) + (counted(pod) ? 1 : 0) - least;
}

/** Parts of the topology that the pod could not go to anyway do not count, unless the constraint says so. */
function isEligible(pod: Pod, constraint: TopologySpreadConstraint, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  if (constraint.nodeAffinityPolicy !== "Ignore" && nodeAffinity(pod, info, all).length > 0) return false;
  return constraint.nodeTaintsPolicy !== "Honor" || taints(pod, info, all).length === 0;
}

function selector(pod: Pod, constraint: TopologySpreadConstraint): (other: Pod) => boolean {
  if (constraint.labelSelector === undefined) return () => false;
  const requirements = [
    ...requirementsOf(constraint.labelSelector),
    ...sameLabels(pod, constraint.matchLabelKeys, "In"),
  ];
  const namespace = pod.metadata?.namespace;
  return ({ metadata }) =>
    metadata?.namespace === namespace &&
    metadata?.deletionTimestamp === undefined &&
    matchesLabels(requirements, metadata?.labels);
}
