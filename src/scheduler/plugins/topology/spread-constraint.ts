/** Constraints of topology spread, compiled for one pod. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { TopologySpreadConstraint } from "../../../api/core/pod-spec/affinity.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { compileSelector, ownLabelRequirements, type Selector } from "../../cache/label-match.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import { matchesRequiredAffinity, requiresAffinity } from "../nodes/node-selector.ts";
import { findUntoleratedTaint } from "../nodes/tolerations.ts";

export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly topologyKey: string;
  readonly selector: Selector;
  /** Whether nodes with taints that the pod does not tolerate are left out. */
  readonly honorsTaints: boolean;
  /** Whether the pods of a node count, by the policies for affinity and taints. */
  readonly includesNode: (node: NodeInfo) => boolean;
}

export function compileConstraints(
  pod: PodInfo,
  constraints: readonly TopologySpreadConstraint[],
  action: TopologySpreadConstraint["whenUnsatisfiable"],
): readonly SpreadConstraint[] {
  return constraints
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    .map((constraint) =>
      compileConstraint(
        pod.pod,
        constraint,
        compileSelector(constraint.labelSelector, ownLabelRequirements(pod.labels, constraint.matchLabelKeys, "In")),
      ),
    );
}

export function compileConstraint(
  pod: Pod,
  { maxSkew, minDomains, topologyKey, nodeAffinityPolicy, nodeTaintsPolicy }: TopologySpreadConstraint,
  selector: Selector,
): SpreadConstraint {
  const honorsAffinity = nodeAffinityPolicy !== "Ignore" && requiresAffinity(pod);
  const honorsTaints = nodeTaintsPolicy === "Honor";
  const tolerations = pod.spec?.tolerations ?? [];
  return {
    maxSkew,
    minDomains: minDomains ?? 1,
    topologyKey,
    selector,
    honorsTaints,
    includesNode: (node) =>
      (!honorsAffinity || matchesRequiredAffinity(pod, node)) &&
      (!honorsTaints || findUntoleratedTaint(tolerations, node.taints) === undefined),
  };
}

export function hasAllKeys({ labels }: NodeInfo, constraints: readonly SpreadConstraint[]): boolean {
  return constraints.every(({ topologyKey }) => getMember(labels, topologyKey) !== undefined);
}
