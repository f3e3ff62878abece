import { list, map, named, object, optional, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const labelSelectorRequirement = object("meta/v1.LabelSelectorRequirement", {
  key: required(1, string),
  operator: required(2, named("v1.LabelSelectorOperator", string)),
  values: optional(3, list(string)),
});
export type LabelSelectorRequirement = Infer<typeof labelSelectorRequirement>;

export const labelSelector = object(
  "meta/v1.LabelSelector",
  {
    matchLabels: optional(1, map(string)),
    matchExpressions: optional(2, list(labelSelectorRequirement)),
  },
  { atomic: true },
);
export type LabelSelector = Infer<typeof labelSelector>;

export const fieldSelectorRequirement = object("meta/v1.FieldSelectorRequirement", {
  key: required(1, string),
  operator: required(2, named("v1.FieldSelectorOperator", string)),
  values: optional(3, list(string)),
});
export type FieldSelectorRequirement = Infer<typeof fieldSelectorRequirement>;
