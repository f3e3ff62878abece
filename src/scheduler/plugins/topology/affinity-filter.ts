/** Required pod affinity and anti-affinity, of the incoming pod and of existing pods. */
import { getMember } from "../../../schema/value/plain-object.ts";
import { type AffinityTerm, termMatches } from "../../cache/affinity-term.ts";
import type { ClusterCache } from "../../cache/cluster-cache.ts";
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";
import type { PodMatcher } from "../../cache/pod-match-index.ts";
import type { NodeFilter } from "../../framework/plugin.ts";
import { type Rejection, unresolvable, unschedulable } from "../../framework/rejection.ts";
import { DomainCounts } from "./domain-counts.ts";

const NAME = "InterPodAffinity";
const NO_AFFINITY = unresolvable(NAME, "node(s) didn't match pod affinity rules");
const ANTI_AFFINITY = unschedulable(NAME, "node(s) didn't match pod anti-affinity rules");
const EXISTING_ANTI_AFFINITY = unschedulable(NAME, "node(s) didn't satisfy existing pods anti-affinity rules");

interface AffinityState {
  /** Existing pods whose anti-affinity matches the incoming pod. */
  readonly existingAntiAffinity: DomainCounts;
  /** Existing pods that all affinity terms match. */
  readonly affinity: DomainCounts;
  /** Existing pods that an anti-affinity term matches. */
  readonly antiAffinity: DomainCounts;
}

/** Undefined if no term concerns the pod. */
export function createAffinityFilter(pod: PodInfo, cache: ClusterCache): NodeFilter | undefined {
  const { requiredAffinity, requiredAntiAffinity } = pod.terms;
  const existingAntiAffinity = new DomainCounts();
  const namespaceLabels = cache.namespaceLabels(pod.namespace);
  for (const { term, counts } of cache.terms.entries("requiredAntiAffinity")) {
    if (termMatches(term, pod.namespace, pod.labels, namespaceLabels)) {
      existingAntiAffinity.addNodes(term.topologyKey, counts, cache);
    }
  }
  if (existingAntiAffinity.isEmpty && requiredAffinity.length + requiredAntiAffinity.length === 0) return undefined;
  const affinity = new DomainCounts();
  if (requiredAffinity.length > 0) {
    const counts = cache.matches.counts(matcherOf(requiredAffinity, cache));
    for (const { topologyKey } of requiredAffinity) affinity.addNodes(topologyKey, counts, cache);
  }
  const antiAffinity = new DomainCounts();
  for (const term of requiredAntiAffinity) {
    antiAffinity.addNodes(term.topologyKey, cache.matches.counts(matcherOf([term], cache)), cache);
  }
  return new AffinityFilter(pod, { existingAntiAffinity, affinity, antiAffinity }, cache);
}

/** Matches pods that all terms select. Selectors of namespaces are resolved, so that the matcher stays right. */
export function matcherOf(terms: readonly AffinityTerm[], cache: ClusterCache): PodMatcher {
  const resolved = terms.map(({ selector, namespaces, namespaceSelector }) => {
    const names = new Set(namespaces);
    if (namespaceSelector.key !== "nothing") {
      for (const [name, labels] of cache.namespaces()) if (namespaceSelector.matches(labels)) names.add(name);
    }
    return { selector, names };
  });
  const parts = resolved.map(({ selector, names }) => `${[...names].sort().join(",")} ${selector.key}`);
  return {
    key: `affinity ${parts.join("\n")}`,
    matches: ({ namespace, labels }) =>
      resolved.every(({ selector, names }) => names.has(namespace) && selector.matches(labels)),
  };
}

class AffinityFilter implements NodeFilter {
  readonly #pod: PodInfo;
  readonly #state: AffinityState;
  readonly #cache: ClusterCache;

  constructor(pod: PodInfo, state: AffinityState, cache: ClusterCache) {
    this.#pod = pod;
    this.#state = state;
    this.#cache = cache;
  }

  filter(node: NodeInfo): Rejection | undefined {
    if (!this.#satisfiesAffinity(node)) return NO_AFFINITY;
    for (const { topologyKey } of this.#pod.terms.requiredAntiAffinity) {
      if (this.#state.antiAffinity.get(topologyKey, node) > 0) return ANTI_AFFINITY;
    }
    return this.#state.existingAntiAffinity.containsNode(node) ? EXISTING_ANTI_AFFINITY : undefined;
  }

  addPod(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, 1);
  }

  removePod(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, -1);
  }

  clone(): NodeFilter {
    const { existingAntiAffinity, affinity, antiAffinity } = this.#state;
    const state = {
      existingAntiAffinity: existingAntiAffinity.clone(),
      affinity: affinity.clone(),
      antiAffinity: antiAffinity.clone(),
    };
    return new AffinityFilter(this.#pod, state, this.#cache);
  }

  /** The first pod of a group with affinity to itself fits any node with the topology labels. */
  #satisfiesAffinity(node: NodeInfo): boolean {
    const { requiredAffinity } = this.#pod.terms;
    let podsExist = true;
    for (const { topologyKey } of requiredAffinity) {
      if (getMember(node.labels, topologyKey) === undefined) return false;
      if (this.#state.affinity.get(topologyKey, node) <= 0) podsExist = false;
    }
    return podsExist || (this.#state.affinity.isEmpty && this.#matchesAll(requiredAffinity, this.#pod));
  }

  #count(pod: PodInfo, node: NodeInfo, difference: 1 | -1): void {
    const { existingAntiAffinity, affinity, antiAffinity } = this.#state;
    for (const term of pod.terms.requiredAntiAffinity) {
      if (this.#matches(term, this.#pod)) existingAntiAffinity.add(term.topologyKey, node, difference);
    }
    const { requiredAffinity, requiredAntiAffinity } = this.#pod.terms;
    if (requiredAffinity.length > 0 && this.#matchesAll(requiredAffinity, pod)) {
      for (const { topologyKey } of requiredAffinity) affinity.add(topologyKey, node, difference);
    }
    for (const term of requiredAntiAffinity) {
      if (this.#matches(term, pod)) antiAffinity.add(term.topologyKey, node, difference);
    }
  }

  #matchesAll(terms: readonly AffinityTerm[], pod: PodInfo): boolean {
    return terms.every((term) => this.#matches(term, pod));
  }

  #matches(term: AffinityTerm, { namespace, labels }: PodInfo): boolean {
    return termMatches(term, namespace, labels, this.#cache.namespaceLabels(namespace));
  }
}
