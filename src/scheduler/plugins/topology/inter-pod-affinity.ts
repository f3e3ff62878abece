import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { type AffinityTerm, termMatches } from "../../cache/affinity-term.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import { isAssigned, PodInfo, uidOf } from "../../cache/pod-info.ts";
import type { ClusterEvent } from "../../framework/cluster-event.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { createAffinityFilter } from "./affinity-filter.ts";
import { createAffinityScorer } from "./affinity-score.ts";

const NAME = "InterPodAffinity";
const DEFAULT_HARD_WEIGHT = 1;

export interface InterPodAffinityArgs {
  /** How much a required affinity of an existing pod to the incoming pod counts in the score. */
  readonly hardPodAffinityWeight?: number | undefined;
  readonly ignorePreferredTermsOfExistingPods?: boolean | undefined;
}

/** Affinity and anti-affinity between pods, of the incoming pod and of those on nodes. */
export function createInterPodAffinity(args: InterPodAffinityArgs, cache: ClusterCache): Plugin {
  const hardWeight = args.hardPodAffinityWeight ?? DEFAULT_HARD_WEIGHT;
  return {
    name: NAME,
    points: ["preFilter", "filter", "preScore", "score"],
    events: [
      {
        resource: "Pod",
        actions: ["Add", "UpdatePodLabel", "Delete"],
        hint: (pod, event) => isSchedulableAfterPodChange(pod, event, cache),
      },
      { resource: "Node", actions: ["Add", "UpdateNodeLabel"], hint: isSchedulableAfterNodeChange },
    ],
    preFilter({ pod }) {
      const filter = createAffinityFilter(pod, cache);
      return filter === undefined ? "skip" : { filter };
    },
    preScore({ pod }) {
      const { preferredAffinity, preferredAntiAffinity } = pod.terms;
      const hasOwn = preferredAffinity.length + preferredAntiAffinity.length > 0;
      if (args.ignorePreferredTermsOfExistingPods === true && !hasOwn) return undefined;
      return createAffinityScorer(pod, cache, hardWeight);
    },
  };
}

/** Also concerns the terms of the changed pod, for which upstream's hint does not retry. */
function isSchedulableAfterPodChange(pod: Pod, { before, after }: ClusterEvent, cache: ClusterCache): boolean {
  const [old, next] = [before as Pod | undefined, after as Pod | undefined];
  const changed = next ?? old;
  if (changed === undefined) return true;
  const waiting = new PodInfo(pod);
  if (uidOf(changed) === waiting.uid) return true;
  // Pods without a node do not matter.
  if (!isAssigned(changed)) return false;
  const matches = (term: AffinityTerm, { namespace, labels }: PodInfo): boolean =>
    termMatches(term, namespace, labels, cache.namespaceLabels(namespace));
  const { requiredAffinity, requiredAntiAffinity } = waiting.terms;
  const attracts = (candidate: Pod | undefined): boolean => {
    const info = candidate && new PodInfo(candidate);
    return info !== undefined && requiredAffinity.length > 0 && requiredAffinity.every((term) => matches(term, info));
  };
  const repels = (candidate: Pod | undefined): boolean => {
    const info = candidate && new PodInfo(candidate);
    if (info === undefined) return false;
    return (
      requiredAntiAffinity.some((term) => matches(term, info)) ||
      info.terms.requiredAntiAffinity.some((term) => matches(term, waiting))
    );
  };
  return (attracts(next) && !attracts(old)) || (repels(old) && !repels(next));
}

/** The node has a topology label of a term that it did not have, or had with another value. */
function isSchedulableAfterNodeChange(pod: Pod, { before, after }: ClusterEvent): boolean {
  const { requiredAffinity, requiredAntiAffinity } = new PodInfo(pod).terms;
  const [old, next] = [before as Node | undefined, after as Node];
  const domainOf = (node: Node | undefined, key: string) => getMember(node?.metadata?.labels, key);
  const isChanged = (key: string): boolean => domainOf(old, key) !== domainOf(next, key);
  const isGained = ({ topologyKey }: AffinityTerm): boolean =>
    domainOf(next, topologyKey) !== undefined && isChanged(topologyKey);
  if (requiredAffinity.some(isGained)) return true;
  // A new node is in no domain that anti-affinity excludes.
  if (old === undefined) return requiredAffinity.length === 0 || requiredAntiAffinity.length > 0;
  // The anti-affinity of other pods may have any key.
  if (requiredAffinity.length + requiredAntiAffinity.length === 0) return true;
  return requiredAntiAffinity.some(
    ({ topologyKey }) => domainOf(old, topologyKey) !== undefined && isChanged(topologyKey),
  );
}
