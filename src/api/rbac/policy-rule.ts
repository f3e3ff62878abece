import { list, object, optional, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

export const subject = object(
  "rbac/v1.Subject",
  {
    kind: required(1, string),
    apiGroup: optional(2, string),
    name: required(3, string),
    namespace: optional(4, string),
  },
  { atomic: true },
);
export type Subject = Infer<typeof subject>;

export const roleRef = object(
  "rbac/v1.RoleRef",
  {
    apiGroup: required(1, string),
    kind: required(2, string),
    name: required(3, string),
  },
  { atomic: true },
);
export type RoleRef = Infer<typeof roleRef>;

export const policyRule = object("rbac/v1.PolicyRule", {
  verbs: required(1, list(string)),
  apiGroups: optional(2, list(string)),
  resources: optional(3, list(string)),
  resourceNames: optional(4, list(string)),
  nonResourceURLs: optional(5, list(string)),
});
export type PolicyRule = Infer<typeof policyRule>;
