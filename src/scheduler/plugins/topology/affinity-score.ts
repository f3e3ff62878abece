/** Preferred pod affinity and anti-affinity, in both directions. */
import { type AffinityTerm, termMatches } from "../../cache/affinity-term.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import type { TermType } from "../../cache/term-index.ts";
import { MAX_NODE_SCORE, type NodeScorer } from "../../framework/plugin.ts";
import { matcherOf } from "./affinity-filter.ts";
import { DomainCounts } from "./domain-counts.ts";

/** Undefined if no term concerns the pod. `hardWeight`: the weight of required affinity of existing pods. */
export function createAffinityScorer(pod: PodInfo, cache: ClusterCache, hardWeight: number): NodeScorer | undefined {
  const scores = new DomainCounts();
  const addOwn = (terms: readonly AffinityTerm[], sign: 1 | -1): void => {
    for (const term of terms) {
      scores.addNodes(term.topologyKey, cache.matches.counts(matcherOf([term], cache)), cache, sign * term.weight);
    }
  };
  const namespaceLabels = cache.namespaceLabels(pod.namespace);
  const addExisting = (type: TermType, weightOf: (term: AffinityTerm) => number): void => {
    for (const { term, counts } of cache.terms.entries(type)) {
      if (!termMatches(term, pod.namespace, pod.labels, namespaceLabels)) continue;
      scores.addNodes(term.topologyKey, counts, cache, weightOf(term));
    }
  };
  addOwn(pod.terms.preferredAffinity, 1);
  addOwn(pod.terms.preferredAntiAffinity, -1);
  if (hardWeight > 0) addExisting("requiredAffinity", () => hardWeight);
  addExisting("preferredAffinity", ({ weight }) => weight);
  addExisting("preferredAntiAffinity", ({ weight }) => -weight);
  return scores.isEmpty ? undefined : { score: (node) => scores.sum(node), normalize: normalizeRange };
}

/** Scales the range of scores to 0 to 100. */
function normalizeRange(scores: number[]): void {
  const smallest = scores.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER);
  const largest = scores.reduce((a, b) => Math.max(a, b), Number.MIN_SAFE_INTEGER);
  const range = largest - smallest;
  for (const [index, score] of scores.entries()) {
    scores[index] = range > 0 ? Math.trunc(MAX_NODE_SCORE * ((score - smallest) / range)) : 0;
  }
}
