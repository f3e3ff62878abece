import {
  base64,
  boolean,
  int32,
  listMap,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const serviceReference = object("apiregistration/v1.ServiceReference", {
  namespace: optional(1, string),
  name: optional(2, string),
  port: pointer(3, int32),
});
export type ServiceReference = Infer<typeof serviceReference>;

export const apiServiceSpec = object("apiregistration/v1.APIServiceSpec", {
  service: pointer(1, serviceReference),
  group: optional(2, string),
  version: optional(3, string),
  insecureSkipTLSVerify: optional(4, boolean),
  caBundle: optional(5, base64),
  groupPriorityMinimum: required(7, int32),
  versionPriority: required(8, int32),
});
export type APIServiceSpec = Infer<typeof apiServiceSpec>;

export const apiServiceCondition = object("apiregistration/v1.APIServiceCondition", {
  type: required(1, named("v1.APIServiceConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type APIServiceCondition = Infer<typeof apiServiceCondition>;

export const apiServiceStatus = object("apiregistration/v1.APIServiceStatus", {
  conditions: optional(1, listMap(apiServiceCondition, "type"), { patchStrategy: "merge", patchMergeKey: "type" }),
});
export type APIServiceStatus = Infer<typeof apiServiceStatus>;

export const apiService = object("apiregistration/v1.APIService", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, apiServiceSpec),
  status: optional(3, apiServiceStatus),
});
export type APIService = Infer<typeof apiService>;
