import { boolean, int64, list, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { typeMeta } from "./type-meta.ts";

export const preconditions = object("meta/v1.Preconditions", {
  uid: pointer(1, string),
  resourceVersion: pointer(2, string),
});
export type Preconditions = Infer<typeof preconditions>;

export const deleteOptions = object("meta/v1.DeleteOptions", {
  ...typeMeta,
  gracePeriodSeconds: pointer(1, int64),
  preconditions: pointer(2, preconditions),
  orphanDependents: pointer(3, boolean),
  propagationPolicy: pointer(4, string),
  dryRun: optional(5, list(string)),
  ignoreStoreReadErrorWithClusterBreakingPotential: pointer(6, boolean),
});
export type DeleteOptions = Infer<typeof deleteOptions>;
