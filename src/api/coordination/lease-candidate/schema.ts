import { microTime, named, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

const leaseCandidateSpec = object("coordination/v1beta1.LeaseCandidateSpec", {
  leaseName: required(1, string),
  pingTime: pointer(2, microTime),
  renewTime: pointer(3, microTime),
  binaryVersion: required(4, string),
  emulationVersion: optional(5, string),
  strategy: optional(6, named("v1.CoordinatedLeaseStrategy", string), { requiredInOpenApi: true }),
});
export type LeaseCandidateSpec = Infer<typeof leaseCandidateSpec>;

export const leaseCandidate = object("coordination/v1beta1.LeaseCandidate", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, leaseCandidateSpec),
});
export type LeaseCandidate = Infer<typeof leaseCandidate>;
