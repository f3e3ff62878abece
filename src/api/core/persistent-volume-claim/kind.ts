import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { persistentVolumeClaimColumns } from "./columns.ts";
import { type PersistentVolumeClaim, persistentVolumeClaim } from "./schema.ts";
import { persistentVolumeClaimStrategy } from "./strategy.ts";
import { validatePersistentVolumeClaimStatusUpdate } from "./validation.ts";

export const persistentVolumeClaimKind: Kind<PersistentVolumeClaim> = {
  group: "",
  version: "v1",
  kind: "PersistentVolumeClaim",
  listKind: "PersistentVolumeClaimList",
  plural: "persistentvolumeclaims",
  singular: "persistentvolumeclaim",
  shortNames: ["pvc"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [
    statusSubresource("PersistentVolumeClaim", {
      validateUpdate: validatePersistentVolumeClaimStatusUpdate,
    }),
  ],
  storageName: "persistentvolumeclaims",
  schema: persistentVolumeClaim,
  columns: persistentVolumeClaimColumns,
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadataUpdate", "metadata", "spec"],
  strategy: persistentVolumeClaimStrategy,
};
