import {
  boolean,
  documentedEnum,
  int32,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const priorityClass = object("scheduling/v1.PriorityClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  value: required(2, int32),
  globalDefault: optional(3, boolean),
  description: optional(4, string),
  preemptionPolicy: pointer(5, named("v1.PreemptionPolicy", documentedEnum("PreemptLowerPriority", "Never"))),
});
export type PriorityClass = Infer<typeof priorityClass>;
