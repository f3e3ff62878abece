import { listMap, named, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const componentCondition = object("core/v1.ComponentCondition", {
  type: required(1, named("v1.ComponentConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  message: optional(3, string),
  error: optional(4, string),
});
export type ComponentCondition = Infer<typeof componentCondition>;

export const componentStatus = object("core/v1.ComponentStatus", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  conditions: optional(2, listMap(componentCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type ComponentStatus = Infer<typeof componentStatus>;
