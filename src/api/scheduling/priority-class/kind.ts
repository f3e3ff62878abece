import { ageColumn, booleanColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type PriorityClass, priorityClass } from "./schema.ts";
import { priorityClassStrategy } from "./strategy.ts";

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
  columns: [
    nameColumn,
    integerColumn("Value", (object) => object.value),
    booleanColumn("Global-Default", (object) => object.globalDefault ?? false),
    ageColumn,
    column("PreemptionPolicy", (object) => object.preemptionPolicy ?? ""),
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: priorityClassStrategy,
};
