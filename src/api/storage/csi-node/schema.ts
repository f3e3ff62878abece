import { int32, list, listMap, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const volumeNodeResources = object("storage/v1.VolumeNodeResources", {
  count: pointer(1, int32),
});
export type VolumeNodeResources = Infer<typeof volumeNodeResources>;

export const csiNodeDriver = object("storage/v1.CSINodeDriver", {
  name: required(1, string),
  nodeID: required(2, string),
  topologyKeys: optional(3, list(string), { emitEmpty: true }),
  allocatable: pointer(4, volumeNodeResources),
});
export type CSINodeDriver = Infer<typeof csiNodeDriver>;

export const csiNodeSpec = object("storage/v1.CSINodeSpec", {
  drivers: required(1, listMap(csiNodeDriver, "name"), { patchStrategy: "merge", patchMergeKey: "name" }),
});
export type CSINodeSpec = Infer<typeof csiNodeSpec>;

export const csiNode = object("storage/v1.CSINode", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, csiNodeSpec),
});
export type CSINode = Infer<typeof csiNode>;
