import { boolean, int64, list, named, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { typeMeta } from "./type-meta.ts";

export const preconditions = object("meta/v1.Preconditions", {
  uid: pointer(1, named("types.UID", string)),
  resourceVersion: pointer(2, string),
});
export type Preconditions = Infer<typeof preconditions>;

export const deleteOptions = object("meta/v1.DeleteOptions", {
  ...typeMeta,
  gracePeriodSeconds: pointer(1, int64),
  preconditions: pointer(2, preconditions),
  orphanDependents: pointer(3, boolean),
  propagationPolicy: pointer(4, named("v1.DeletionPropagation", string)),
  dryRun: optional(5, list(string)),
  ignoreStoreReadErrorWithClusterBreakingPotential: pointer(6, boolean),
});
export type DeleteOptions = Infer<typeof deleteOptions>;

export const getOptions = object("meta/v1.GetOptions", {
  ...typeMeta,
  resourceVersion: optional(1, string),
});
export type GetOptions = Infer<typeof getOptions>;

export const listOptions = object("meta/v1.ListOptions", {
  ...typeMeta,
  labelSelector: optional(1, string),
  fieldSelector: optional(2, string),
  watch: optional(3, boolean),
  allowWatchBookmarks: optional(9, boolean),
  resourceVersion: optional(4, string),
  resourceVersionMatch: optional(10, named("v1.ResourceVersionMatch", string)),
  timeoutSeconds: pointer(5, int64),
  limit: optional(7, int64),
  continue: optional(8, string),
  sendInitialEvents: pointer(11, boolean),
});
export type ListOptions = Infer<typeof listOptions>;

export const createOptions = object("meta/v1.CreateOptions", {
  ...typeMeta,
  dryRun: optional(1, list(string)),
  fieldManager: optional(3, string),
  fieldValidation: optional(4, string),
});
export type CreateOptions = Infer<typeof createOptions>;

export const updateOptions = object("meta/v1.UpdateOptions", {
  ...typeMeta,
  dryRun: optional(1, list(string)),
  fieldManager: optional(2, string),
  fieldValidation: optional(3, string),
});
export type UpdateOptions = Infer<typeof updateOptions>;

export const patchOptions = object("meta/v1.PatchOptions", {
  ...typeMeta,
  dryRun: optional(1, list(string)),
  force: pointer(2, boolean),
  fieldManager: optional(3, string),
  fieldValidation: optional(4, string),
});
export type PatchOptions = Infer<typeof patchOptions>;
