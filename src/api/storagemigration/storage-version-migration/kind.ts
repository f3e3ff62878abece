import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dropStatus, keepStatus, replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type StorageVersionMigration, storageVersionMigration } from "./schema.ts";
import { validateMigration, validateMigrationStatus, validateMigrationUpdate } from "./validation.ts";

const { format: _, ...plainNameColumn } = nameColumn;

export const storageVersionMigrationKind: Kind<StorageVersionMigration> = {
  group: "storagemigration.svc.io",
  version: "v1alpha1",
  since: "1.30",
  featureGate: "StorageVersionMigrator",
  kind: "StorageVersionMigration",
  listKind: "StorageVersionMigrationList",
  plural: "storageversionmigrations",
  singular: "storageversionmigration",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("StorageVersionMigration", {
      prepareForUpdate: replaceStatusOnly,
      resetFields: [["metadata"], ["spec"]],
      validateUpdate: validateMigrationStatus,
    }),
  ],
  storageName: "storageversionmigrations",
  schema: storageVersionMigration,
  columns: [
    plainNameColumn,
    column("Resource", ({ spec }) => {
      const { group = "", version = "", resource = "" } = spec?.resource ?? {};
      return [resource, version, group].filter((part) => part !== "").join(".");
    }),
  ],
  selectableFields: {},
  strategy: {
    prepareForCreate: dropStatus,
    prepareForUpdate: keepStatus,
    validate: validateMigration,
    validateUpdate: validateMigrationUpdate,
    allowUnconditionalUpdate: false,
  },
};
