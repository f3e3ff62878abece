import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { persistentVolumeColumns } from "./columns.ts";
import { type PersistentVolume, persistentVolume } from "./schema.ts";
import { persistentVolumeStrategy, prepareForStatusUpdate } from "./strategy.ts";

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
  returnsDeletedObject: true,
  subresources: [statusSubresource("PersistentVolume", { prepareForUpdate: prepareForStatusUpdate })],
  storageName: "persistentvolumes",
  schema: persistentVolume,
  columns: persistentVolumeColumns,
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec"],
  strategy: persistentVolumeStrategy,
};
