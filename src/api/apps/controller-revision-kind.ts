import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type ControllerRevision, controllerRevision } from "./controller-revision.ts";

export const controllerRevisionKind: Kind<ControllerRevision> = {
  group: "apps",
  version: "v1",
  kind: "ControllerRevision",
  listKind: "ControllerRevisionList",
  plural: "controllerrevisions",
  singular: "controllerrevision",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "controllerrevisions",
  schema: controllerRevision,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
