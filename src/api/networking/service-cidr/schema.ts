import { list, listMap, object, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { condition } from "../../meta/condition.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const serviceCIDRSpec = object("networking/v1.ServiceCIDRSpec", {
  cidrs: optional(1, list(string)),
});
export type ServiceCIDRSpec = Infer<typeof serviceCIDRSpec>;

export const serviceCIDRStatus = object("networking/v1.ServiceCIDRStatus", {
  conditions: optional(1, listMap(condition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type ServiceCIDRStatus = Infer<typeof serviceCIDRStatus>;

export const serviceCIDR = object("networking/v1.ServiceCIDR", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, serviceCIDRSpec),
  status: optional(3, serviceCIDRStatus),
});
export type ServiceCIDR = Infer<typeof serviceCIDR>;
