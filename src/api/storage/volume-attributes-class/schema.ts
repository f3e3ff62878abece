import { map, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const volumeAttributesClass = object("storage/v1beta1.VolumeAttributesClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  driverName: required(2, string),
  parameters: optional(3, map(string)),
});
export type VolumeAttributesClass = Infer<typeof volumeAttributesClass>;
