import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type RuntimeClass, runtimeClass } from "./runtime-class.ts";

export const runtimeClassKind: Kind<RuntimeClass> = {
  group: "node.svc.io",
  version: "v1",
  kind: "RuntimeClass",
  listKind: "RuntimeClassList",
  plural: "runtimeclasses",
  singular: "runtimeclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "runtimeclasses",
  schema: runtimeClass,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
