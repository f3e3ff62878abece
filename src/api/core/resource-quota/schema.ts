import { documentedEnum, list, named, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { resourceList } from "../resources/schema.ts";

const resourceQuotaScope = named(
  "v1.ResourceQuotaScope",
  documentedEnum(
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
  ),
);

export const scopedResourceSelectorRequirement = object("core/v1.ScopedResourceSelectorRequirement", {
  scopeName: required(1, resourceQuotaScope),
  operator: required(2, named("v1.ScopeSelectorOperator", documentedEnum("In", "NotIn", "Exists", "DoesNotExist"))),
  values: optional(3, list(string)),
});
export type ScopedResourceSelectorRequirement = Infer<typeof scopedResourceSelectorRequirement>;

export const scopeSelector = object(
  "core/v1.ScopeSelector",
  {
    matchExpressions: optional(1, list(scopedResourceSelectorRequirement)),
  },
  { atomic: true },
);
export type ScopeSelector = Infer<typeof scopeSelector>;

export const resourceQuotaSpec = object("core/v1.ResourceQuotaSpec", {
  hard: optional(1, resourceList),
  scopes: optional(2, list(resourceQuotaScope)),
  scopeSelector: pointer(3, scopeSelector),
});
export type ResourceQuotaSpec = Infer<typeof resourceQuotaSpec>;

export const resourceQuotaStatus = object("core/v1.ResourceQuotaStatus", {
  hard: optional(1, resourceList),
  used: optional(2, resourceList),
});
export type ResourceQuotaStatus = Infer<typeof resourceQuotaStatus>;

export const resourceQuota = object("core/v1.ResourceQuota", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, resourceQuotaSpec),
  status: optional(3, resourceQuotaStatus),
});
export type ResourceQuota = Infer<typeof resourceQuota>;
