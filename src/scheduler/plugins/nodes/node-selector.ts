/** Node selectors: terms of which one must match, each with requirements for labels and fields that all must hold. */
import type { Node } from "../../../api/core/node/schema.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm } from "../../../api/core/node/selector.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { matchesValue } from "../../../api/meta/selectors/selector.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { Labels } from "../../cache/label-match.ts";

/** The properties of a node that selectors match. */
export interface SelectedNode {
  readonly name: string;
  readonly labels: Labels;
}

export function matchesTerms(terms: readonly NodeSelectorTerm[], node: SelectedNode): boolean {
  return terms.some((term) => matchesTerm(term, node));
}

/** A term without requirements matches no node. */
export function matchesTerm(term: NodeSelectorTerm, { name, labels }: SelectedNode): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (isEmptyTerm(term)) return false;
  return (
    matchExpressions.every((requirement) => matches(requirement, getMember(labels, requirement.key))) &&
    matchFields.every((requirement) => matches(requirement, requirement.key === "metadata.name" ? name : undefined))
  );
}

export function isEmptyTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): boolean {
  return matchExpressions.length + matchFields.length === 0;
}

function matches({ operator, values = [] }: NodeSelectorRequirement, value: string | undefined): boolean {
  return matchesValue({ operator: operator as Parameters<typeof matchesValue>[0]["operator"], values }, value);
}

/** `spec.nodeSelector` and required node affinity: all labels of the former, and one term of the latter. */
export function matchesRequiredAffinity(pod: Pod, node: SelectedNode): boolean {
  for (const [key, value] of Object.entries(pod.spec?.nodeSelector ?? {})) {
    if (getMember(node.labels, key) !== value) return false;
  }
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesTerms(required.nodeSelectorTerms, node);
}

/** The same for a node object, with Kubernetes' message. */
export function affinityMismatch(pod: Pod, { metadata }: Node): readonly string[] {
  const node = { name: metadata?.name ?? "", labels: metadata?.labels ?? {} };
  return matchesRequiredAffinity(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"];
}

/** Whether `matchesRequiredAffinity` depends on the node. */
export function requiresAffinity({ spec }: Pod): boolean {
  return (
    Object.keys(spec?.nodeSelector ?? {}).length > 0 ||
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution !== undefined
  );
}
