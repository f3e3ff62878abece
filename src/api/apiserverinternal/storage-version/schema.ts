import {
  int64,
  listMap,
  listSet,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

const serverStorageVersion = object("apiserverinternal/v1alpha1.ServerStorageVersion", {
  apiServerID: optional(1, string),
  encodingVersion: optional(2, string),
  decodableVersions: optional(3, listSet(string)),
  servedVersions: optional(4, listSet(string)),
});
export type ServerStorageVersion = Infer<typeof serverStorageVersion>;

const storageVersionCondition = object("apiserverinternal/v1alpha1.StorageVersionCondition", {
  type: required(1, named("v1alpha1.StorageVersionConditionType", string)),
  status: required(2, named("v1alpha1.ConditionStatus", string)),
  observedGeneration: optional(3, int64),
  lastTransitionTime: optional(4, time),
  reason: required(5, string),
  message: optional(6, string, { requiredInOpenApi: true }),
});
export type StorageVersionCondition = Infer<typeof storageVersionCondition>;

const storageVersionStatus = object("apiserverinternal/v1alpha1.StorageVersionStatus", {
  storageVersions: optional(1, listMap(serverStorageVersion, "apiServerID")),
  commonEncodingVersion: pointer(2, string),
  conditions: optional(3, listMap(storageVersionCondition, "type")),
});
export type StorageVersionStatus = Infer<typeof storageVersionStatus>;

export const storageVersion = object("apiserverinternal/v1alpha1.StorageVersion", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, object("apiserverinternal/v1alpha1.StorageVersionSpec", {})),
  status: optional(3, storageVersionStatus, { emitEmpty: true, requiredInOpenApi: true }),
});
export type StorageVersion = Infer<typeof storageVersion>;
