import { int64, named, object, optional, required, string, time } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const condition = object("meta/v1.Condition", {
  type: required(1, string),
  status: required(2, named("v1.ConditionStatus", string)),
  observedGeneration: optional(3, int64),
  lastTransitionTime: required(4, time),
  reason: required(5, string),
  message: required(6, string),
});
export type Condition = Infer<typeof condition>;
