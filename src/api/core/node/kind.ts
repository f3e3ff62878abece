import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { nodeColumns } from "./columns.ts";
import { type Node, node } from "./schema.ts";
import { nodeStatusStrategy, nodeStrategy } from "./strategy.ts";

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
  // Kubernetes stores nodes under their original name; equal keys allow a store to be taken over.
  storageName: "minions",
  schema: node,
  columns: nodeColumns,
  selectableFields: { "spec.unschedulable": (object) => String(object.spec?.unschedulable ?? false) },
  strategy: nodeStrategy,
};
