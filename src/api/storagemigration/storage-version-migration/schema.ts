import { listMap, named, object, optional, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

const groupVersionResource = object("storagemigration/v1alpha1.GroupVersionResource", {
  group: optional(1, string),
  version: optional(2, string),
  resource: optional(3, string),
});

export const migrationCondition = object("storagemigration/v1alpha1.MigrationCondition", {
  type: required(1, named("v1alpha1.MigrationConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastUpdateTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});

const storageVersionMigrationSpec = object("storagemigration/v1alpha1.StorageVersionMigrationSpec", {
  resource: required(1, groupVersionResource),
  continueToken: optional(2, string),
});

const storageVersionMigrationStatus = object("storagemigration/v1alpha1.StorageVersionMigrationStatus", {
  conditions: optional(1, listMap(migrationCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
  resourceVersion: optional(2, string),
});

export const storageVersionMigration = object("storagemigration/v1alpha1.StorageVersionMigration", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, storageVersionMigrationSpec),
  status: optional(3, storageVersionMigrationStatus),
});
export type StorageVersionMigration = Infer<typeof storageVersionMigration>;
