/** Required pod affinity and anti-affinity: near some pods, away from others, where "near" is a label of the node. */
import type { PodAffinityTerm } from "../../../api/core/pod-spec/affinity.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { matchesLabels, type Requirement, requirementsOf } from "../../../api/meta/selectors/selector.ts";
import type { NodeInfo } from "../node-info.ts";
import type { Filter } from "./filter.ts";

export const podAffinity: Filter = (pod, info, all) => {
  const { podAffinity: near, podAntiAffinity: away } = pod.spec?.affinity ?? {};
  const nearTerms = near?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const awayTerms = away?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const unread = [...nearTerms, ...awayTerms].some((term) => Object.keys(term.namespaceSelector ?? {}).length > 0);
  if (unread) return ["node(s) could not be judged: pod affinity with a namespaceSelector is not supported"];
  if (!nearTerms.every((term) => hasNeighbour(pod, term, info, all)) && !isFirstOfItsKind(pod, nearTerms, info, all)) {
    return ["node(s) didn't match pod affinity rules"];
  }
  if (awayTerms.some((term) => hasNeighbour(pod, term, info, all))) {
    return ["node(s) didn't match pod anti-affinity rules"];
  }
  return isUnwelcome(pod, info, all) ? ["node(s) didn't satisfy existing pods anti-affinity rules"] : [];
};

/** Whether a pod that the term means runs in the node's part of the topology. */
function hasNeighbour(owner: Pod, term: PodAffinityTerm, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  const means = meaning(owner, term);
  return neighbourhood(info, term.topologyKey, all).some((node) => node.pods.some(means));
}

/** The first pod of a group that wants to be together has nobody to join: it may go anywhere with the label. */
function isFirstOfItsKind(
  pod: Pod,
  terms: readonly PodAffinityTerm[],
  info: NodeInfo,
  all: readonly NodeInfo[],
): boolean {
  return terms.every((term) => {
    const means = meaning(pod, term);
    return (
      info.node.metadata?.labels?.[term.topologyKey] !== undefined &&
      means(pod) &&
      !all.some((node) => node.pods.some(means))
    );
  });
}

/** Anti-affinity works both ways: a pod that is there may want this one away. */
function isUnwelcome(pod: Pod, info: NodeInfo, all: readonly NodeInfo[]): boolean {
  return all.some((other) =>
    other.pods.some((resident) => {
      const terms = resident.spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
      return terms.some(
        (term) => neighbourhood(other, term.topologyKey, all).includes(info) && meaning(resident, term)(pod),
      );
    }),
  );
}

function neighbourhood(info: NodeInfo, topologyKey: string, all: readonly NodeInfo[]): readonly NodeInfo[] {
  const domain = info.node.metadata?.labels?.[topologyKey];
  if (domain === undefined) return [];
  return all.filter((other) => other.node.metadata?.labels?.[topologyKey] === domain);
}

/** Which pods a term of `owner` means: those of its namespaces with its labels. No selector means none. */
function meaning(owner: Pod, term: PodAffinityTerm): (pod: Pod) => boolean {
  const { labelSelector, namespaces = [], namespaceSelector } = term;
  if (labelSelector === undefined) return () => false;
  const requirements = [
    ...requirementsOf(labelSelector),
    ...sameLabels(owner, term.matchLabelKeys, "In"),
    ...sameLabels(owner, term.mismatchLabelKeys, "NotIn"),
  ];
  const everywhere = namespaceSelector !== undefined;
  const within = namespaces.length > 0 || everywhere ? namespaces : [owner.metadata?.namespace ?? ""];
  return ({ metadata }) =>
    (everywhere || within.includes(metadata?.namespace ?? "")) && matchesLabels(requirements, metadata?.labels);
}

/** Keys whose value is taken from the pod itself; keys it does not have say nothing. */
export function sameLabels(
  pod: Pod,
  keys: readonly string[] | undefined,
  operator: "In" | "NotIn",
): readonly Requirement[] {
  return (keys ?? []).flatMap((key) => {
    const value = pod.metadata?.labels?.[key];
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}
