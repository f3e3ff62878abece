import { object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const ingressClassParametersReference = object("networking/v1.IngressClassParametersReference", {
  apiGroup: pointer(1, string),
  kind: required(2, string),
  name: required(3, string),
  scope: pointer(4, string, { emitEmpty: true }),
  namespace: pointer(5, string),
});
export type IngressClassParametersReference = Infer<typeof ingressClassParametersReference>;

export const ingressClassSpec = object("networking/v1.IngressClassSpec", {
  controller: optional(1, string),
  parameters: pointer(2, ingressClassParametersReference),
});
export type IngressClassSpec = Infer<typeof ingressClassSpec>;

export const ingressClass = object("networking/v1.IngressClass", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, ingressClassSpec),
});
export type IngressClass = Infer<typeof ingressClass>;
