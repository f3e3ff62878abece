import {
  documentedEnum,
  list,
  listMap,
  named,
  object,
  optional,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const namespaceSpec = object("core/v1.NamespaceSpec", {
  finalizers: optional(1, list(named("v1.FinalizerName", string))),
});
export type NamespaceSpec = Infer<typeof namespaceSpec>;

export const namespaceCondition = object("core/v1.NamespaceCondition", {
  type: required(1, named("v1.NamespaceConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(4, time),
  reason: optional(5, string),
  message: optional(6, string),
});
export type NamespaceCondition = Infer<typeof namespaceCondition>;

export const namespaceStatus = object("core/v1.NamespaceStatus", {
  phase: optional(1, named("v1.NamespacePhase", documentedEnum("Active", "Terminating"))),
  conditions: optional(2, listMap(namespaceCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
});
export type NamespaceStatus = Infer<typeof namespaceStatus>;

export const namespace = object("core/v1.Namespace", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, namespaceSpec),
  status: optional(3, namespaceStatus),
});
export type Namespace = Infer<typeof namespace>;
