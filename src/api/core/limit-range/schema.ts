import { list, named, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { resourceList } from "../resources/schema.ts";

export const limitRangeItem = object("core/v1.LimitRangeItem", {
  type: required(1, named("v1.LimitType", string)),
  max: optional(2, resourceList),
  min: optional(3, resourceList),
  default: optional(4, resourceList),
  defaultRequest: optional(5, resourceList),
  maxLimitRequestRatio: optional(6, resourceList),
});
export type LimitRangeItem = Infer<typeof limitRangeItem>;

export const limitRangeSpec = object("core/v1.LimitRangeSpec", {
  limits: required(1, list(limitRangeItem)),
});
export type LimitRangeSpec = Infer<typeof limitRangeSpec>;

export const limitRange = object("core/v1.LimitRange", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, limitRangeSpec),
});
export type LimitRange = Infer<typeof limitRange>;
