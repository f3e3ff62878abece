import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type PriorityClass, priorityClass } from "./priority-class.ts";

export const priorityClassKind: Kind<PriorityClass> = {
  group: "scheduling.svc.io",
  version: "v1",
  kind: "PriorityClass",
  listKind: "PriorityClassList",
  plural: "priorityclasses",
  singular: "priorityclass",
  shortNames: ["pc"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "priorityclasses",
  schema: priorityClass,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
