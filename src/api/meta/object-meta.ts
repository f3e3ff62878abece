import {
  boolean,
  fieldsV1,
  int64,
  list,
  listMap,
  listSet,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const ownerReference = object(
  "meta/v1.OwnerReference",
  {
    apiVersion: required(5, string),
    kind: required(1, string),
    name: required(3, string),
    uid: required(4, named("types.UID", string)),
    controller: pointer(6, boolean),
    blockOwnerDeletion: pointer(7, boolean),
  },
  { atomic: true },
);
export type OwnerReference = Infer<typeof ownerReference>;

export const managedFieldsEntry = object("meta/v1.ManagedFieldsEntry", {
  manager: optional(1, string),
  operation: optional(2, named("v1.ManagedFieldsOperationType", string)),
  apiVersion: optional(3, string),
  time: pointer(4, time),
  fieldsType: optional(6, string),
  fieldsV1: pointer(7, fieldsV1),
  subresource: optional(8, string),
});
export type ManagedFieldsEntry = Infer<typeof managedFieldsEntry>;

export const objectMeta = object("meta/v1.ObjectMeta", {
  name: optional(1, string),
  generateName: optional(2, string),
  namespace: optional(3, string),
  selfLink: optional(4, string),
  uid: optional(5, named("types.UID", string)),
  resourceVersion: optional(6, string),
  generation: optional(7, int64),
  creationTimestamp: optional(8, time),
  deletionTimestamp: pointer(9, time),
  deletionGracePeriodSeconds: pointer(10, int64),
  // Errors show an empty map as such.
  labels: optional(11, map(string), { keepEmpty: true }),
  annotations: optional(12, map(string)),
  ownerReferences: optional(13, listMap(ownerReference, "uid"), {
    patchStrategy: "merge",
    patchMergeKey: "uid",
  }),
  finalizers: optional(14, listSet(string), { patchStrategy: "merge" }),
  managedFields: optional(17, list(managedFieldsEntry)),
});
export type ObjectMeta = Infer<typeof objectMeta>;
