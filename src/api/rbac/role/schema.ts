import { list, object, optional } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { policyRule } from "../policy-rule.ts";

export const role = object("rbac/v1.Role", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  rules: optional(2, list(policyRule), { emitEmpty: true }),
});
export type Role = Infer<typeof role>;
