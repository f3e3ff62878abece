import type { Node } from "../../api/core/node/schema.ts";
import type { NodeSelectorTerm } from "../../api/core/node/selector.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import type { Filter } from "./filter.ts";

const MISMATCH = ["node(s) didn't match Pod's node affinity/selector"];

/** `spec.nodeSelector` and required node affinity: all labels of the former, and one term of the latter. */
export const nodeAffinity: Filter = (pod, { node }) => affinityMismatch(pod, node);

/** The same for a node alone. */
export function affinityMismatch(pod: Pod, node: Node): readonly string[] {
  const labels = node.metadata?.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec?.nodeSelector ?? {})) if (labels[key] !== value) return MISMATCH;
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined) return [];
  const fields = { "metadata.name": node.metadata?.name ?? "" };
  return required.nodeSelectorTerms.some((term) => matches(term, labels, fields)) ? [] : MISMATCH;
}

type Labels = Readonly<Record<string, string>>;

/** A term without requirements matches no node. */
function matches(term: NodeSelectorTerm, labels: Labels, fields: Labels): boolean {
  const expressions = (term.matchExpressions ?? []).map(requirement);
  const fieldTerms = (term.matchFields ?? []).map(requirement);
  if (expressions.length + fieldTerms.length === 0) return false;
  return matchesLabels(expressions, labels) && matchesLabels(fieldTerms, fields);
}

function requirement(term: {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}): Requirement {
  return { key: term.key, operator: term.operator as Requirement["operator"], values: term.values ?? [] };
}
