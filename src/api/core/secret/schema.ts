import { base64, boolean, map, named, object, optional, pointer, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const secret = object("core/v1.Secret", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  immutable: pointer(5, boolean),
  data: optional(2, map(base64)),
  stringData: optional(4, map(string)),
  type: optional(3, named("v1.SecretType", string)),
});
export type Secret = Infer<typeof secret>;
