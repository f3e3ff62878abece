import { object, optional, pointer } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { deleteOptions } from "../meta/options.ts";
import { typeMeta } from "../meta/type-meta.ts";

export const eviction = object("policy/v1.Eviction", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  deleteOptions: pointer(2, deleteOptions),
});
export type Eviction = Infer<typeof eviction>;
