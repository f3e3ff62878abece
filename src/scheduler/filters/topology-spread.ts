/** `topologySpreadConstraints` with `whenUnsatisfiable: DoNotSchedule`. */

import type { Pod } from "../../api/core/pod/schema.ts";
import type { TopologySpreadConstraint } from "../../api/core/pod-spec/affinity.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import type { NodeInfo } from "../node-info.ts";
import type { Filter } from "./filter.ts";
import { nodeAffinity } from "./node-affinity.ts";
import { labelRequirements } from "./pod-affinity.ts";
import { taints } from "./taints.ts";

const MISMATCH = "node(s) didn't match pod topology spread constraints";

export const topologySpread: Filter = (pod, info, all) => {
  const constraints = (pod.spec?.topologySpreadConstraints ?? []).filter(
    (c) => c.whenUnsatisfiable === "DoNotSchedule",
  );
  for (const constraint of constraints) {
    const domain = info.node.metadata?.labels?.[constraint.topologyKey];
    if (domain === undefined) return [`${MISMATCH} (missing required label)`];
    if (calculateSkew(pod, constraint, domain, all) > constraint.maxSkew) return [MISMATCH];
  }
  return [];
};

/** The skew of `domain` with the pod in it: its count minus the minimum of all domains. */
function calculateSkew(
  pod: Pod,
  constraint: TopologySpreadConstraint,
  domain: string,
  all: readonly NodeInfo[],
): number {
  const counted = createMatcher(pod, constraint);
  const counts = new Map<string, number>();
  for (const info of all) {
    const at = info.node.metadata?.labels?.[constraint.topologyKey];
    if (at === undefined || !isEligible(pod, constraint, info, all)) continue;
    counts.set(at, (counts.get(at) ?? 0) + info.pods.filter(counted).length);
  }
  const tooFew = counts.size < (constraint.minDomains ?? 1);
  const minCount = tooFew ? 0 : Math.min(...counts.values());
  return (counts.get(domain) ?? 0) + (counted(pod) ? 1 : 0) - minCount;
}

/** Domains for which the pod is not eligible do not count, unless the constraint includes them. */
function isEligible(pod: Pod, constraint: TopologySpreadConstraint, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  if (constraint.nodeAffinityPolicy !== "Ignore" && nodeAffinity(pod, info, all).length > 0) return false;
  return constraint.nodeTaintsPolicy !== "Honor" || taints(pod, info, all).length === 0;
}

function createMatcher(pod: Pod, constraint: TopologySpreadConstraint): (other: Pod) => boolean {
  if (constraint.labelSelector === undefined) return () => false;
  const requirements = [
    ...requirementsOf(constraint.labelSelector),
    ...labelRequirements(pod, constraint.matchLabelKeys, "In"),
  ];
  const namespace = pod.metadata?.namespace;
  return ({ metadata }) =>
    metadata?.namespace === namespace &&
    metadata?.deletionTimestamp === undefined &&
    matchesLabels(requirements, metadata?.labels);
}
