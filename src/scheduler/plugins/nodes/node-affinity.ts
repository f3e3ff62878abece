import type { Node } from "../../../api/core/node/schema.ts";
import type { NodeSelectorTerm } from "../../../api/core/node/selector.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { NodeAffinity as NodeAffinitySpec, PreferredSchedulingTerm } from "../../../api/core/pod-spec/affinity.ts";
import { renderFieldErrors } from "../../../schema/validation/field-error.ts";
import type { Plugin } from "../../framework/plugin.ts";
import { unresolvable } from "../../framework/rejection.ts";
import { normalize } from "../normalize.ts";
import { checkPreferredTerms } from "./check-selector.ts";
import {
  isEmptyTerm,
  matchesRequiredAffinity,
  matchesTerm,
  matchesTerms,
  requiresAffinity,
  type SelectedNode,
} from "./node-selector.ts";

const NAME = "NodeAffinity";
const MISMATCH = unresolvable(NAME, "node(s) didn't match Pod's node affinity/selector");
const ENFORCED_MISMATCH = unresolvable(NAME, "node(s) didn't match scheduler-enforced node affinity");
const CONFLICT = unresolvable(NAME, "pod affinity terms conflict");

export interface NodeAffinityArgs {
  /** Affinity that all pods of the profile have besides their own. */
  readonly addedAffinity?: NodeAffinitySpec | undefined;
}

/** `spec.nodeSelector`, required node affinity as a filter, and preferred node affinity as a score. */
export function createNodeAffinity({ addedAffinity }: NodeAffinityArgs): Plugin {
  const added = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const addedPreferred = usableTerms(addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution);
  const fits = (pod: Pod, node: SelectedNode): boolean =>
    (added === undefined || matchesTerms(added, node)) && matchesRequiredAffinity(pod, node);
  return {
    name: NAME,
    points: ["preFilter", "filter", "preScore", "score"],
    events: [
      {
        resource: "Node",
        actions: ["Add", "UpdateNodeLabel"],
        hint: (pod, { before, after }) =>
          fits(pod, selected(after as Node)) && (before === undefined || !fits(pod, selected(before as Node))),
      },
    ],
    preFilter({ pod: { pod } }) {
      if (added === undefined && !requiresAffinity(pod)) return "skip";
      const nodeNames = namedNodes(
        pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [],
      );
      if (nodeNames?.size === 0) return { rejection: CONFLICT };
      return {
        nodeNames,
        filter: {
          filter(node) {
            if (added !== undefined && !matchesTerms(added, node)) return ENFORCED_MISMATCH;
            return matchesRequiredAffinity(pod, node) ? undefined : MISMATCH;
          },
        },
      };
    },
    preScore({ pod: { pod } }) {
      const terms = pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
      const problems = checkPreferredTerms(terms, "");
      if (problems.length > 0) throw new Error(`running PreScore plugin "${NAME}": ${renderFieldErrors(problems)}`);
      const own = usableTerms(terms);
      const preferred = [...addedPreferred, ...own];
      if (preferred.length === 0) return undefined;
      return {
        score: (node) =>
          preferred.reduce((sum, { weight, preference }) => sum + (matchesTerm(preference, node) ? weight : 0), 0),
        normalize,
      };
    },
  };
}

function usableTerms(terms: readonly PreferredSchedulingTerm[] | undefined): readonly PreferredSchedulingTerm[] {
  return (terms ?? []).filter(({ weight, preference }) => weight !== 0 && !isEmptyTerm(preference));
}

function selected({ metadata }: Node): SelectedNode {
  return { name: metadata?.name ?? "", labels: metadata?.labels ?? {} };
}

/** The nodes that the terms name by `metadata.name`; undefined if a term names none. Empty if terms contradict. */
function namedNodes(terms: readonly NodeSelectorTerm[]): ReadonlySet<string> | undefined {
  if (terms.length === 0) return undefined;
  const names = new Set<string>();
  for (const { matchFields = [] } of terms) {
    let ofTerm: Set<string> | undefined;
    for (const { key, operator, values = [] } of matchFields) {
      if (key !== "metadata.name" || operator !== "In") continue;
      const listed = values.filter((name) => ofTerm === undefined || ofTerm.has(name));
      ofTerm = new Set(listed);
    }
    if (ofTerm === undefined) return undefined;
    for (const name of ofTerm) names.add(name);
  }
  return names;
}
