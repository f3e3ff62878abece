import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type PersistentVolume, persistentVolume } from "./persistent-volume.ts";

export const persistentVolumeKind: Kind<PersistentVolume> = {
  group: "",
  version: "v1",
  kind: "PersistentVolume",
  listKind: "PersistentVolumeList",
  plural: "persistentvolumes",
  singular: "persistentvolume",
  shortNames: ["pv"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("PersistentVolume")],
  storageName: "persistentvolumes",
  schema: persistentVolume,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
