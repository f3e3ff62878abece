import { list, object, optional, required } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { roleRef, subject } from "../policy-rule.ts";

export const clusterRoleBinding = object("rbac/v1.ClusterRoleBinding", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  subjects: optional(2, list(subject)),
  roleRef: required(3, roleRef),
});
export type ClusterRoleBinding = Infer<typeof clusterRoleBinding>;
