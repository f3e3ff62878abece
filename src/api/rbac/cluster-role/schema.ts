import { list, object, optional, pointer } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { labelSelector } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { policyRule } from "../policy-rule.ts";

export const aggregationRule = object("rbac/v1.AggregationRule", {
  clusterRoleSelectors: optional(1, list(labelSelector)),
});
export type AggregationRule = Infer<typeof aggregationRule>;

export const clusterRole = object("rbac/v1.ClusterRole", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  rules: optional(2, list(policyRule), { emitEmpty: true }),
  aggregationRule: pointer(3, aggregationRule),
});
export type ClusterRole = Infer<typeof clusterRole>;
