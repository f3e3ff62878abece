import { list, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

export const topologySelectorLabelRequirement = object("core/v1.TopologySelectorLabelRequirement", {
  key: required(1, string),
  values: required(2, list(string)),
});
export type TopologySelectorLabelRequirement = Infer<typeof topologySelectorLabelRequirement>;

export const topologySelectorTerm = object(
  "core/v1.TopologySelectorTerm",
  {
    matchLabelExpressions: optional(1, list(topologySelectorLabelRequirement)),
  },
  { atomic: true },
);
export type TopologySelectorTerm = Infer<typeof topologySelectorTerm>;
