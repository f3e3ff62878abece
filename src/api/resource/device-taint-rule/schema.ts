/** Taints that an administrator adds to devices; `v1alpha3` only. */
import { list, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { alphaTypes } from "../flat-versions/schemas.ts";

const deviceTaintSelector = object("resource/v1alpha3.DeviceTaintSelector", {
  deviceClassName: pointer(1, string),
  driver: pointer(2, string),
  pool: pointer(3, string),
  device: pointer(4, string),
  selectors: optional(5, list(alphaTypes.common.deviceSelector)),
});

export const deviceTaintRule = object("resource/v1alpha3.DeviceTaintRule", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(
    2,
    object("resource/v1alpha3.DeviceTaintRuleSpec", {
      deviceSelector: pointer(1, deviceTaintSelector),
      taint: optional(2, alphaTypes.common.deviceTaint, { requiredInOpenApi: true }),
    }),
  ),
});
export type DeviceTaintRule = Infer<typeof deviceTaintRule>;
