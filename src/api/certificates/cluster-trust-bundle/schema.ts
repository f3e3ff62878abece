import { object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

const clusterTrustBundleSpec = object("certificates/v1beta1.ClusterTrustBundleSpec", {
  signerName: optional(1, string),
  trustBundle: required(2, string),
});

export const clusterTrustBundle = object("certificates/v1beta1.ClusterTrustBundle", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, clusterTrustBundleSpec),
});
export type ClusterTrustBundle = Infer<typeof clusterTrustBundle>;
