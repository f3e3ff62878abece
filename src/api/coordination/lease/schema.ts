import { int32, microTime, named, object, optional, pointer, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const leaseSpec = object("coordination/v1.LeaseSpec", {
  holderIdentity: pointer(1, string),
  leaseDurationSeconds: pointer(2, int32),
  acquireTime: pointer(3, microTime),
  renewTime: pointer(4, microTime),
  leaseTransitions: pointer(5, int32),
  strategy: pointer(6, named("v1.CoordinatedLeaseStrategy", string), { featureGate: "CoordinatedLeaderElection" }),
  preferredHolder: pointer(7, string, {
    featureGate: "CoordinatedLeaderElection",
  }),
});
export type LeaseSpec = Infer<typeof leaseSpec>;

export const lease = object("coordination/v1.Lease", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, leaseSpec),
});
export type Lease = Infer<typeof lease>;
