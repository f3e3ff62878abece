import { documentedEnum, list, named, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const nodeSelectorRequirement = object("core/v1.NodeSelectorRequirement", {
  key: required(1, string),
  operator: required(
    2,
    named("v1.NodeSelectorOperator", documentedEnum("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
  ),
  values: optional(3, list(string)),
});
export type NodeSelectorRequirement = Infer<typeof nodeSelectorRequirement>;

export const nodeSelectorTerm = object(
  "core/v1.NodeSelectorTerm",
  {
    matchExpressions: optional(1, list(nodeSelectorRequirement)),
    matchFields: optional(2, list(nodeSelectorRequirement)),
  },
  { atomic: true },
);
export type NodeSelectorTerm = Infer<typeof nodeSelectorTerm>;

export const nodeSelector = object(
  "core/v1.NodeSelector",
  {
    nodeSelectorTerms: required(1, list(nodeSelectorTerm)),
  },
  { atomic: true },
);
export type NodeSelector = Infer<typeof nodeSelector>;
