import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type LimitRange, limitRange } from "./limit-range.ts";

export const limitRangeKind: Kind<LimitRange> = {
  group: "",
  version: "v1",
  kind: "LimitRange",
  listKind: "LimitRangeList",
  plural: "limitranges",
  singular: "limitrange",
  shortNames: ["limits"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "limitranges",
  schema: limitRange,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
