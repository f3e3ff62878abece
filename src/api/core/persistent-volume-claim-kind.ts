import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type PersistentVolumeClaim, persistentVolumeClaim } from "./persistent-volume-claim.ts";

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
  subresources: [statusSubresource("PersistentVolumeClaim")],
  storageName: "persistentvolumeclaims",
  schema: persistentVolumeClaim,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
