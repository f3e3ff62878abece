import { base64, boolean, map, object, optional, pointer, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const configMap = object("core/v1.ConfigMap", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  immutable: pointer(4, boolean),
  data: optional(2, map(string)),
  binaryData: optional(3, map(base64)),
});
export type ConfigMap = Infer<typeof configMap>;
