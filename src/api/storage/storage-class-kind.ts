import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type StorageClass, storageClass } from "./storage-class.ts";

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
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
