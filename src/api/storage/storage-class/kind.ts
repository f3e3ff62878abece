import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type StorageClass, storageClass } from "./schema.ts";
import { storageClassStrategy } from "./strategy.ts";

const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** Whether the class is the default for claims without a class. */
export function isDefaultClass(object: StorageClass): boolean {
  return DEFAULT_ANNOTATIONS.some((annotation) => object.metadata?.annotations?.[annotation] === "true");
}

export const storageClassKind: Kind<StorageClass> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "StorageClass",
  listKind: "StorageClassList",
  plural: "storageclasses",
  singular: "storageclass",
  shortNames: ["sc"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [],
  storageName: "storageclasses",
  schema: storageClass,
  columns: [
    { ...nameColumn, cell: (object) => `${object.metadata?.name ?? ""}${isDefaultClass(object) ? " (default)" : ""}` },
    column("Provisioner", (object) => object.provisioner),
    column("ReclaimPolicy", (object) => object.reclaimPolicy ?? "Delete"),
    column("VolumeBindingMode", (object) => object.volumeBindingMode ?? "Immediate"),
    column("AllowVolumeExpansion", (object) => object.allowVolumeExpansion ?? false),
    ageColumn,
  ],
  selectableFields: {},
  strategy: storageClassStrategy,
};
