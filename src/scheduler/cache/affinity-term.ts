/** A term of pod affinity or anti-affinity, compiled. */
import type { PodAffinityTerm, WeightedPodAffinityTerm } from "../../api/core/pod-spec/affinity.ts";
import { compileSelector, type Labels, ownLabelRequirements, type Selector } from "./label-match.ts";

/** The pod that has the term. */
interface TermOwner {
  readonly namespace: string;
  readonly labels: Labels;
}

export interface AffinityTerm {
  /** Equal for equal terms. */
  readonly key: string;
  readonly selector: Selector;
  readonly namespaces: ReadonlySet<string>;
  /** Selects further namespaces by their labels; matches none when the term has no such selector. */
  readonly namespaceSelector: Selector;
  readonly topologyKey: string;
  /** Zero for required terms. */
  readonly weight: number;
}

/** Without namespaces and selector of namespaces, a term applies to the namespace of its pod. */
export function compileTerm(term: PodAffinityTerm, owner: TermOwner, weight = 0): AffinityTerm {
  const named = term.namespaces ?? [];
  const isOwn = named.length === 0 && term.namespaceSelector === undefined;
  const namespaces = new Set(isOwn ? [owner.namespace] : named);
  const selector = compileSelector(term.labelSelector, [
    ...ownLabelRequirements(owner.labels, term.matchLabelKeys, "In"),
    ...ownLabelRequirements(owner.labels, term.mismatchLabelKeys, "NotIn"),
  ]);
  const namespaceSelector = compileSelector(term.namespaceSelector);
  const { topologyKey } = term;
  const key = JSON.stringify([[...namespaces].sort(), namespaceSelector.key, selector.key, topologyKey, weight]);
  return { key, selector, namespaces, namespaceSelector, topologyKey, weight };
}

export function compileWeightedTerm(
  { weight, podAffinityTerm }: WeightedPodAffinityTerm,
  owner: TermOwner,
): AffinityTerm {
  return compileTerm(podAffinityTerm, owner, weight);
}

/** Whether the term selects a pod with these labels; `namespaceLabels` are those of the pod's namespace. */
export function termMatches(
  term: AffinityTerm,
  namespace: string,
  labels: Labels,
  namespaceLabels: Labels | undefined,
): boolean {
  const inNamespace = term.namespaces.has(namespace) || term.namespaceSelector.matches(namespaceLabels);
  return inNamespace && term.selector.matches(labels);
}
