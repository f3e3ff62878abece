/** A node's own Node: what steers pods to it is for others to say, but for the labels that are its own business. */
import { type Node, nodeConfigSource, taint } from "../../../api/core/node/schema.ts";
import { mayNodeSetLabel } from "../../../flags/types/node.ts";
import { list } from "../../../schema/define.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";

const taints = list(taint);

export function restrictNode(node: string, request: AdmissionRequest): void {
  const { operation, name } = request;
  const own = JSON.stringify(node);
  const refuse = (why: string): Error => newForbidden(request, why);
  if (name !== node) throw refuse(`node ${own} is not allowed to modify node ${JSON.stringify(name)}`);
  if (operation !== "CREATE" && operation !== "UPDATE") return;
  const [next, previous] = [request.object as Node, request.oldObject as Node | undefined];
  const labels = forbiddenLabels(metadataOf(next).labels, metadataOf(previous).labels).join(", ");
  const { configSource } = next.spec ?? {};
  if (previous === undefined) {
    // In Kubernetes' words: it is about nodes.
    if (configSource !== undefined)
      throw refuse(`node ${own} is not allowed to create pods with a non-nil configSource`);
    if (labels !== "") throw refuse(`node ${own} is not allowed to set the following labels: ${labels}`);
    return;
  }
  if (configSource !== undefined && !semanticEqual(nodeConfigSource, configSource, previous.spec?.configSource)) {
    throw refuse(`node ${own} is not allowed to update configSource to a new non-nil configSource`);
  }
  if (!semanticEqual(taints, next.spec?.taints, previous.spec?.taints)) {
    throw refuse(`node ${own} is not allowed to modify taints`);
  }
  if (labels !== "") throw refuse(`is not allowed to modify labels: ${labels}`);
}

type Labels = Readonly<Record<string, string>>;

/** Those that are added, changed or removed, sorted. */
function forbiddenLabels(next: Labels = {}, previous: Labels = {}): readonly string[] {
  const keys = new Set([...Object.keys(next), ...Object.keys(previous)]);
  return [...keys].filter((key) => next[key] !== previous[key] && !mayNodeSetLabel(key)).sort();
}
