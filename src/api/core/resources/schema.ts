import { listMap, map, milliQuantity, named, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";

/** Quantities by resource name: `{ cpu: "500m", memory: "64Mi" }`. */
export const resourceList = named("v1.ResourceList", map(milliQuantity));
export type ResourceList = Infer<typeof resourceList>;

export const resourceClaim = object("core/v1.ResourceClaim", {
  name: required(1, string),
  request: optional(2, string),
});
export type ResourceClaim = Infer<typeof resourceClaim>;

export const resourceRequirements = object("core/v1.ResourceRequirements", {
  limits: optional(1, resourceList),
  requests: optional(2, resourceList),
  claims: optional(3, listMap(resourceClaim, "name"), {
    featureGate: "DynamicResourceAllocation",
  }),
});
export type ResourceRequirements = Infer<typeof resourceRequirements>;

export const volumeResourceRequirements = object("core/v1.VolumeResourceRequirements", {
  limits: optional(1, resourceList),
  requests: optional(2, resourceList),
});
export type VolumeResourceRequirements = Infer<typeof volumeResourceRequirements>;
