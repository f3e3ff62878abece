import { object, optional, required } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { objectReference } from "../references/object-reference.ts";

export const binding = object("core/v1.Binding", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  target: required(2, objectReference),
});
export type Binding = Infer<typeof binding>;
