import { int32, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const scaleSpec = object("autoscaling/v1.ScaleSpec", {
  replicas: optional(1, int32),
});
export type ScaleSpec = Infer<typeof scaleSpec>;

export const scaleStatus = object("autoscaling/v1.ScaleStatus", {
  replicas: required(1, int32),
  selector: optional(2, string),
});
export type ScaleStatus = Infer<typeof scaleStatus>;

export const scale = object("autoscaling/v1.Scale", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, scaleSpec),
  status: optional(3, scaleStatus),
});
export type Scale = Infer<typeof scale>;
