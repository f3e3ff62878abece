import { object, optional, pointer, quantity, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const csiStorageCapacity = object("storage/v1.CSIStorageCapacity", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  nodeTopology: pointer(2, labelSelector),
  storageClassName: required(3, string),
  capacity: pointer(4, quantity),
  maximumVolumeSize: pointer(5, quantity),
});
export type CSIStorageCapacity = Infer<typeof csiStorageCapacity>;
