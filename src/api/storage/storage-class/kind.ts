import { child, index } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { labelDeprecation } from "../../core/node/deprecated-labels.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { type StorageClass, storageClass } from "./schema.ts";
import { validateStorageClass, validateStorageClassUpdate } from "./validation.ts";

const storageClassStrategy: Strategy<StorageClass> = {
  setDefaults: (object) => ({
    ...object,
    reclaimPolicy: object.reclaimPolicy ?? "Delete",
    volumeBindingMode: object.volumeBindingMode ?? "Immediate",
  }),
  validate: validateStorageClass,
  validateUpdate: validateStorageClassUpdate,
  warnings: ({ allowedTopologies = [] }) =>
    allowedTopologies.flatMap(({ matchLabelExpressions = [] }, i) =>
      matchLabelExpressions.flatMap(({ key }, j) => {
        const at = index(child(index("allowedTopologies", i), "matchLabelExpressions"), j);
        const renamed = labelDeprecation(key);
        return renamed === undefined ? [] : [`${child(at, "key")}: ${renamed}`];
      }),
    ),
};

const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** Whether claims that name no class get this one. */
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
  subresources: [],
  storageName: "storageclasses",
  schema: storageClass,
  columns: [
    { ...nameColumn, cell: (object) => `${object.metadata?.name ?? ""}${isDefaultClass(object) ? " (default)" : ""}` },
    column("Provisioner", (object) => object.provisioner, "What makes volumes of this class."),
    column("ReclaimPolicy", (object) => object.reclaimPolicy ?? "Delete", "What becomes of a volume without a claim."),
    column("VolumeBindingMode", (object) => object.volumeBindingMode ?? "Immediate"),
    column("AllowVolumeExpansion", (object) => object.allowVolumeExpansion ?? false),
    ageColumn,
  ],
  selectableFields: {},
  strategy: storageClassStrategy,
};
