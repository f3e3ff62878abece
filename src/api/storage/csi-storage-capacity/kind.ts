import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type CSIStorageCapacity, csiStorageCapacity } from "./schema.ts";
import { validateCSIStorageCapacity, validateCSIStorageCapacityUpdate } from "./validation.ts";
import { csiStorageCapacityWarnings } from "./warnings.ts";

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
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  strategy: {
    allowUnconditionalUpdate: false,
    validate: validateCSIStorageCapacity,
    validateUpdate: validateCSIStorageCapacityUpdate,
    warnings: csiStorageCapacityWarnings,
  },
};
