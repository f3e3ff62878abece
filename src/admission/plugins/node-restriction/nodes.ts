/** A node may modify only its own Node, except taints and the labels that decide which pods it receives. */
import { type Node, nodeConfigSource, taint } from "../../../api/core/node/schema.ts";
import { mayNodeSetLabel } from "../../../flags/types/node.ts";
import { list } from "../../../schema/define.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";

const taints = list(taint);

export function restrictNode(node: string, request: AdmissionRequest): void {
  const { operation, name } = request;
  const quotedNode = JSON.stringify(node);
  const reject = (reason: string): Error => newForbidden(request, reason);
  if (name !== node) throw reject(`node ${quotedNode} is not allowed to modify node ${JSON.stringify(name)}`);
  if (operation !== "CREATE" && operation !== "UPDATE") return;
  const [next, previous] = [request.object as Node, request.oldObject as Node | undefined];
  const labels = forbiddenLabels(metadataOf(next).labels, metadataOf(previous).labels).join(", ");
  const { configSource } = next.spec ?? {};
  if (previous === undefined) {
    // The message is Kubernetes' own, although the object is a Node.
    if (configSource !== undefined)
      throw reject(`node ${quotedNode} is not allowed to create pods with a non-nil configSource`);
    if (labels !== "") throw reject(`node ${quotedNode} is not allowed to set the following labels: ${labels}`);
    return;
  }
  const { configSource: current } = previous.spec ?? {};
  const isSame = current !== undefined && semanticEqual(nodeConfigSource, configSource, current);
  if (configSource !== undefined && !isSame) {
    throw reject(`node ${quotedNode} is not allowed to update configSource to a new non-nil configSource`);
  }
  if (!semanticEqual(taints, next.spec?.taints, previous.spec?.taints)) {
    throw reject(`node ${quotedNode} is not allowed to modify taints`);
  }
  const [owners, before] = [next, previous].map((object) => metadataOf(object).ownerReferences ?? []);
  if (!deepEqual(owners, before)) throw reject(`node ${quotedNode} is not allowed to modify ownerReferences`);
  if (labels !== "") throw reject(`is not allowed to modify labels: ${labels}`);
}

type Labels = Readonly<Record<string, string>>;

/** Labels that were added, changed or removed, sorted. */
function forbiddenLabels(next: Labels = {}, previous: Labels = {}): readonly string[] {
  const keys = new Set([...Object.keys(next), ...Object.keys(previous)]);
  return [...keys].filter((key) => next[key] !== previous[key] && !mayNodeSetLabel(key)).sort();
}
