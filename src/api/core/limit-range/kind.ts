import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type LimitRange, type LimitRangeItem, limitRange } from "./schema.ts";
import { validateLimitRange } from "./validation.ts";

/** A container without a limit gets the greatest; without a request, its limit or else the least. */
function setItemDefaults(item: LimitRangeItem): LimitRangeItem {
  if (item.type !== "Container") return item;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  return {
    ...item,
    ...(Object.keys(limits).length === 0 ? {} : { default: limits }),
    ...(Object.keys(requests).length === 0 ? {} : { defaultRequest: requests }),
  };
}

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
  strategy: {
    generatesMissingName: true,
    allowCreateOnUpdate: true,
    setDefaults: ({ spec, ...object }) =>
      spec === undefined ? object : { ...object, spec: { ...spec, limits: spec.limits.map(setItemDefaults) } },
    validate: validateLimitRange,
  },
};
