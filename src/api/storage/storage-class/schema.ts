import {
  boolean,
  documentedEnum,
  list,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { topologySelectorTerm } from "../../core/node/topology-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const storageClass = object("storage/v1.StorageClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  provisioner: required(2, string),
  parameters: optional(3, map(string)),
  reclaimPolicy: pointer(4, named("v1.PersistentVolumeReclaimPolicy", documentedEnum("Recycle", "Delete", "Retain"))),
  mountOptions: optional(5, list(string)),
  allowVolumeExpansion: pointer(6, boolean),
  volumeBindingMode: pointer(7, named("v1.VolumeBindingMode", documentedEnum("Immediate", "WaitForFirstConsumer"))),
  allowedTopologies: optional(8, list(topologySelectorTerm)),
});
export type StorageClass = Infer<typeof storageClass>;
