import { ageColumn, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type CSINode, csiNode } from "./schema.ts";
import { validateCSINode, validateCSINodeUpdate } from "./validation.ts";

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
  returnsDeletedObject: true,
  subresources: [],
  storageName: "csinodes",
  schema: csiNode,
  columns: [nameColumn, integerColumn("Drivers", ({ spec }) => spec.drivers.length), ageColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec"],
  strategy: { allowUnconditionalUpdate: false, validate: validateCSINode, validateUpdate: validateCSINodeUpdate },
};
