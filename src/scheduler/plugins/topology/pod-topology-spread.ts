import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { TopologySpreadConstraint } from "../../../api/core/pod-spec/affinity.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { isAssigned, PodInfo, uidOf } from "../../cache/pod-info.ts";
import type { ClusterEvent } from "../../framework/cluster-event.ts";
import type { Handle } from "../../framework/handle.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { defaultSelector } from "./default-selector.ts";
import { compileConstraint, compileConstraints, type SpreadConstraint } from "./spread-constraint.ts";
import { createSpreadFilter } from "./spread-filter.ts";
import { createSpreadScorer } from "./spread-score.ts";

const NAME = "PodTopologySpread";

export interface PodTopologySpreadArgs {
  readonly defaultingType?: "System" | "List" | undefined;
  /** For pods without constraints, if the type is `List`. They have no selector. */
  readonly defaultConstraints?: readonly TopologySpreadConstraint[] | undefined;
}

const SYSTEM_DEFAULTS: readonly TopologySpreadConstraint[] = [
  { topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 3 },
  { topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 5 },
];

/** `topologySpreadConstraints`, or default ones for pods of services and controllers. */
export function createPodTopologySpread(args: PodTopologySpreadArgs, { cache, listers }: Handle): Plugin {
  const isSystem = args.defaultingType !== "List";
  const defaults = isSystem ? SYSTEM_DEFAULTS : (args.defaultConstraints ?? []);
  const constraintsOf = (
    pod: PodInfo,
    action: TopologySpreadConstraint["whenUnsatisfiable"],
  ): readonly SpreadConstraint[] => {
    const own = pod.pod.spec?.topologySpreadConstraints ?? [];
    if (own.length > 0) return compileConstraints(pod, own, action);
    const applicable = defaults.filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action);
    if (applicable.length === 0) return [];
    const selector = defaultSelector(pod.pod, listers);
    return selector.isEmpty ? [] : applicable.map((constraint) => compileConstraint(pod.pod, constraint, selector));
  };
  return {
    name: NAME,
    points: ["preFilter", "filter", "preScore", "score"],
    events: [
      {
        resource: "Pod",
        actions: ["Add", "UpdatePodLabel", "Delete", "UpdatePodToleration"],
        hint: (pod, event) => {
          const info = new PodInfo(pod);
          return isSchedulableAfterPodChange(info, constraintsOf(info, "DoNotSchedule"), event);
        },
      },
      {
        resource: "Node",
        actions: ["Add", "Delete", "UpdateNodeLabel", "UpdateNodeTaint"],
        hint: (pod, event) => isSchedulableAfterNodeChange(constraintsOf(new PodInfo(pod), "DoNotSchedule"), event),
      },
    ],
    preFilter({ pod }) {
      const constraints = constraintsOf(pod, "DoNotSchedule");
      return constraints.length === 0 ? "skip" : { filter: createSpreadFilter(pod, constraints, cache) };
    },
    preScore({ pod }, nodes) {
      const constraints = constraintsOf(pod, "ScheduleAnyway");
      if (constraints.length === 0) return undefined;
      const requireAllKeys = (pod.pod.spec?.topologySpreadConstraints ?? []).length > 0 || !isSystem;
      return createSpreadScorer(pod, constraints, nodes, cache, requireAllKeys);
    },
  };
}

/** A pod on a node of the namespace that a constraint counts came, went, or began or ceased to be counted. */
function isSchedulableAfterPodChange(
  pod: PodInfo,
  constraints: readonly SpreadConstraint[],
  { before, after }: ClusterEvent,
): boolean {
  const [old, next] = [before as Pod | undefined, after as Pod | undefined];
  const isInvolved = (changed: Pod): boolean =>
    uidOf(changed) === pod.uid || (isAssigned(changed) && (changed.metadata?.namespace ?? "") === pod.namespace);
  if ([old, next].some((changed) => changed !== undefined && !isInvolved(changed))) return false;
  const counts = ({ selector }: SpreadConstraint, candidate: Pod | undefined): boolean =>
    candidate !== undefined && selector.matches(candidate.metadata?.labels);
  if (old === undefined || next === undefined) return constraints.some((constraint) => counts(constraint, next ?? old));
  const hasOtherTolerations = uidOf(next) === pod.uid && !deepEqual(old.spec?.tolerations, next.spec?.tolerations);
  if (hasOtherTolerations && constraints.some(({ honorsTaints }) => honorsTaints)) return true;
  return constraints.some((constraint) => counts(constraint, old) !== counts(constraint, next));
}

/** The node has, or had, all topology labels, and its domains or taints changed. */
function isSchedulableAfterNodeChange(constraints: readonly SpreadConstraint[], event: ClusterEvent): boolean {
  const [old, next] = [event.before as Node | undefined, event.after as Node | undefined];
  const domainsOf = (node: Node | undefined): readonly (string | undefined)[] =>
    constraints.map(({ topologyKey }) => getMember(node?.metadata?.labels, topologyKey));
  const hasKeys = (node: Node | undefined): boolean => node !== undefined && !domainsOf(node).includes(undefined);
  if (old === undefined || next === undefined) return hasKeys(next ?? old);
  if (hasKeys(old) !== hasKeys(next)) return true;
  if (!hasKeys(next)) return false;
  return !deepEqual(domainsOf(old), domainsOf(next)) || !deepEqual(old.spec?.taints, next.spec?.taints);
}
