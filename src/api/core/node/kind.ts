import { index } from "../../../schema/value/field-path.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { cidrWarnings } from "../../meta/validation/ip.ts";
import { keepStatus, replaceStatus, statusSubresource } from "../../strategy.ts";
import { nodeColumns } from "./columns.ts";
import { type Node, node } from "./schema.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";

const nodeStrategy: Strategy<Node> = {
  setDefaults: (object) => setAllocatable(syncPodCidrs(object)),
  prepareForCreate: dropConfigSource,
  prepareForUpdate: (next, previous) => keepStatus(dropConfigSource(next), previous),
  validate: validateNode,
  validateUpdate: validateNodeUpdate,
  warnings: nodeWarnings,
};

/** The older member has the first range of the newer one, and wins where they differ. */
function syncPodCidrs(object: Node): Node {
  const { podCIDR = "", podCIDRs = [] } = object.spec ?? {};
  const [first = ""] = podCIDRs;
  if (podCIDR === first) return object;
  return { ...object, spec: { ...object.spec, ...(podCIDR === "" ? { podCIDR: first } : { podCIDRs: [podCIDR] }) } };
}

function setAllocatable(object: Node): Node {
  const { status } = object;
  if (status?.capacity === undefined || status.allocatable !== undefined) return object;
  return { ...object, status: { ...status, allocatable: status.capacity } };
}

/** Agents no longer take their configuration from the server. */
function dropConfigSource(object: Node): Node {
  if (object.spec?.configSource === undefined) return object;
  const { configSource: _, ...spec } = object.spec;
  return { ...object, spec };
}

function dropConfigStatus(object: Node): Node {
  if (object.status?.config === undefined) return object;
  const { config: _, ...status } = object.status;
  return { ...object, status };
}

function nodeWarnings({ spec }: Node): readonly string[] {
  return [
    ...(spec?.externalID ? ["spec.externalID: this field is deprecated, and is unused by Kubernetes"] : []),
    ...(spec?.podCIDRs ?? []).flatMap((cidr, i) => cidrWarnings(cidr, index("spec.podCIDRs", i))),
  ];
}

const nodeStatusStrategy = {
  prepareForUpdate: (next: Node, previous: Node): Node => dropConfigStatus(replaceStatus(next, previous)),
  validateUpdate: validateNodeUpdate,
};

export const nodeKind: Kind<Node> = {
  group: "",
  version: "v1",
  kind: "Node",
  listKind: "NodeList",
  plural: "nodes",
  singular: "node",
  shortNames: ["no"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    { name: "proxy", kind: "NodeProxyOptions", verbs: ["create", "delete", "get", "patch", "update"] },
    statusSubresource("Node", nodeStatusStrategy),
  ],
  // Kubernetes keeps nodes under their first name, so that a store can be handed over.
  storageName: "minions",
  schema: node,
  columns: nodeColumns,
  selectableFields: { "spec.unschedulable": (object) => String(object.spec?.unschedulable ?? false) },
  strategy: nodeStrategy,
};
