import { int64, object, optional, rawExtension, required } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const controllerRevision = object("apps/v1.ControllerRevision", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  data: optional(2, rawExtension),
  revision: required(3, int64),
});
export type ControllerRevision = Infer<typeof controllerRevision>;
