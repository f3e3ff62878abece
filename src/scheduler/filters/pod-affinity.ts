/** Required pod affinity and anti-affinity. */

import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodAffinityTerm } from "../../api/core/pod-spec/affinity.ts";
import { matchesLabels, type Requirement, requirementsOf } from "../../api/meta/selectors/selector.ts";
import type { NodeInfo } from "../node-info.ts";
import type { Filter } from "./filter.ts";

export const podAffinity: Filter = (pod, info, all) => {
  const { podAffinity: near, podAntiAffinity: away } = pod.spec?.affinity ?? {};
  const nearTerms = near?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const awayTerms = away?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const unsupported = [...nearTerms, ...awayTerms].some((term) => Object.keys(term.namespaceSelector ?? {}).length > 0);
  if (unsupported) return ["node(s) could not be evaluated: pod affinity with a namespaceSelector is not supported"];
  if (!nearTerms.every((term) => hasMatchingPod(pod, term, info, all)) && !isFirstOfGroup(pod, nearTerms, info, all)) {
    return ["node(s) didn't match pod affinity rules"];
  }
  if (awayTerms.some((term) => hasMatchingPod(pod, term, info, all))) {
    return ["node(s) didn't match pod anti-affinity rules"];
  }
  return violatesExistingAntiAffinity(pod, info, all)
    ? ["node(s) didn't satisfy existing pods anti-affinity rules"]
    : [];
};

/** Whether a pod that matches the term runs in the node's topology domain. */
function hasMatchingPod(owner: Pod, term: PodAffinityTerm, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  const matches = createMatcher(owner, term);
  return nodesInDomain(info, term.topologyKey, all).some((node) => node.pods.some(matches));
}

/** The first pod of a group with affinity to itself fits any node with the topology label. */
function isFirstOfGroup(
  pod: Pod,
  terms: readonly PodAffinityTerm[],
  info: NodeInfo,
  all: readonly NodeInfo[],
): boolean {
  return terms.every((term) => {
    const matches = createMatcher(pod, term);
    return (
      info.node.metadata?.labels?.[term.topologyKey] !== undefined &&
      matches(pod) &&
      !all.some((node) => node.pods.some(matches))
    );
  });
}

/** Whether the anti-affinity of an existing pod matches this pod. */
function violatesExistingAntiAffinity(pod: Pod, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  return all.some((other) =>
    other.pods.some((existing) => {
      const terms = existing.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
      return terms.some(
        (term) => nodesInDomain(other, term.topologyKey, all).includes(info) && createMatcher(existing, term)(pod),
      );
    }),
  );
}

function nodesInDomain(info: NodeInfo, topologyKey: string, all: readonly NodeInfo[]): readonly NodeInfo[] {
  const domain = info.node.metadata?.labels?.[topologyKey];
  if (domain === undefined) return [];
  return all.filter((other) => other.node.metadata?.labels?.[topologyKey] === domain);
}

/** The pods that a term of `owner` matches: in its namespaces and with its labels. Without a selector none. */
function createMatcher(owner: Pod, term: PodAffinityTerm): (pod: Pod) => boolean {
  const { labelSelector, namespaces = [], namespaceSelector } = term;
  if (labelSelector === undefined) return () => false;
  const requirements = [
    ...requirementsOf(labelSelector),
    ...labelRequirements(owner, term.matchLabelKeys, "In"),
    ...labelRequirements(owner, term.mismatchLabelKeys, "NotIn"),
  ];
  const everywhere = namespaceSelector !== undefined;
  const within = namespaces.length > 0 || everywhere ? namespaces : [owner.metadata?.namespace ?? ""];
  return ({ metadata }) =>
    (everywhere || within.includes(metadata?.namespace ?? "")) && matchesLabels(requirements, metadata?.labels);
}

/** Requirements from labels of the pod itself; keys that it does not have are ignored. */
export function labelRequirements(
  pod: Pod,
  keys: readonly string[] | undefined,
  operator: "In" | "NotIn",
): readonly Requirement[] {
  return (keys ?? []).flatMap((key) => {
    const value = pod.metadata?.labels?.[key];
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}
