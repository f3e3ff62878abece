import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type CSINode, csiNode } from "./csi-node.ts";

export const csiNodeKind: Kind<CSINode> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "CSINode",
  listKind: "CSINodeList",
  plural: "csinodes",
  singular: "csinode",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "csinodes",
  schema: csiNode,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
