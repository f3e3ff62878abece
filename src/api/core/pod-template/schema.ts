import { object, optional } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { podSpec } from "../pod-spec/schema.ts";

export const podTemplateSpec = object("core/v1.PodTemplateSpec", {
  metadata: optional(1, objectMeta),
  spec: optional(2, podSpec),
});
export type PodTemplateSpec = Infer<typeof podTemplateSpec>;

export const podTemplate = object("core/v1.PodTemplate", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  template: optional(2, podTemplateSpec),
});
export type PodTemplate = Infer<typeof podTemplate>;
