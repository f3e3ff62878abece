import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type CSIStorageCapacity, csiStorageCapacity } from "./csi-storage-capacity.ts";

export const csiStorageCapacityKind: Kind<CSIStorageCapacity> = {
  group: "storage.svc.io",
  version: "v1",
  kind: "CSIStorageCapacity",
  listKind: "CSIStorageCapacityList",
  plural: "csistoragecapacities",
  singular: "csistoragecapacity",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "csistoragecapacities",
  schema: csiStorageCapacity,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
