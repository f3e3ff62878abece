import { int64, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const listMeta = object("meta/v1.ListMeta", {
  selfLink: optional(1, string),
  resourceVersion: optional(2, string),
  continue: optional(3, string),
  remainingItemCount: pointer(4, int64),
});
export type ListMeta = Infer<typeof listMeta>;
