import { boolean, list, listMap, object, optional, pointer } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { localObjectReference, objectReference } from "../references/object-reference.ts";

export const serviceAccount = object("core/v1.ServiceAccount", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  secrets: optional(2, listMap(objectReference, "name"), {
    patchStrategy: "merge",
    patchMergeKey: "name",
  }),
  imagePullSecrets: optional(3, list(localObjectReference)),
  automountServiceAccountToken: pointer(4, boolean),
});
export type ServiceAccount = Infer<typeof serviceAccount>;
