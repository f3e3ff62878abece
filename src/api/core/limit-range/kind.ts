import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { setItemDefaults } from "./defaults.ts";
import { type LimitRange, limitRange } from "./schema.ts";
import { validateLimitRange } from "./validation.ts";

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
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: {
    generatesMissingName: true,
    allowCreateOnUpdate: true,
    setDefaults: (object) => {
      const { spec } = object;
      if (spec === undefined || spec.limits.length === 0) return object;
      return { ...object, spec: { ...spec, limits: spec.limits.map(setItemDefaults) } };
    },
    validate: validateLimitRange,
  },
};
