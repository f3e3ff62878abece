import {
  boolean,
  int64,
  list,
  listSet,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const tokenRequest = object("storage/v1.TokenRequest", {
  audience: required(1, string),
  expirationSeconds: pointer(2, int64),
});
export type TokenRequest = Infer<typeof tokenRequest>;

export const csiDriverSpec = object("storage/v1.CSIDriverSpec", {
  attachRequired: pointer(1, boolean),
  podInfoOnMount: pointer(2, boolean),
  volumeLifecycleModes: optional(3, listSet(named("v1.VolumeLifecycleMode", string))),
  storageCapacity: pointer(4, boolean, { featureGate: "CSIStorageCapacity" }),
  fsGroupPolicy: pointer(5, named("v1.FSGroupPolicy", string)),
  tokenRequests: optional(6, list(tokenRequest)),
  requiresRepublish: pointer(7, boolean),
  seLinuxMount: pointer(8, boolean, { featureGate: "SELinuxMountReadWriteOncePod" }),
  nodeAllocatableUpdatePeriodSeconds: pointer(9, int64, { featureGate: "MutableCSINodeAllocatableCount" }),
});
export type CSIDriverSpec = Infer<typeof csiDriverSpec>;

export const csiDriver = object("storage/v1.CSIDriver", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, csiDriverSpec),
});
export type CSIDriver = Infer<typeof csiDriver>;
