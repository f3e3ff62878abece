import {
  base64,
  boolean,
  documentedEnum,
  int32,
  list,
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
import { jsonSchemaProps } from "./json-schema-props.ts";

export const serviceReference = object("apiextensions/v1.ServiceReference", {
  namespace: required(1, string),
  name: required(2, string),
  path: pointer(3, string),
  port: pointer(4, int32),
});
export type ServiceReference = Infer<typeof serviceReference>;

export const webhookClientConfig = object("apiextensions/v1.WebhookClientConfig", {
  url: pointer(3, string),
  service: pointer(1, serviceReference),
  caBundle: optional(2, base64),
});
export type WebhookClientConfig = Infer<typeof webhookClientConfig>;

export const webhookConversion = object("apiextensions/v1.WebhookConversion", {
  clientConfig: pointer(2, webhookClientConfig),
  conversionReviewVersions: required(3, list(string)),
});
export type WebhookConversion = Infer<typeof webhookConversion>;

export const customResourceConversion = object("apiextensions/v1.CustomResourceConversion", {
  strategy: required(1, named("v1.ConversionStrategyType", string)),
  webhook: pointer(2, webhookConversion),
});
export type CustomResourceConversion = Infer<typeof customResourceConversion>;

export const customResourceValidation = object("apiextensions/v1.CustomResourceValidation", {
  openAPIV3Schema: pointer(1, jsonSchemaProps),
});
export type CustomResourceValidation = Infer<typeof customResourceValidation>;

export const customResourceSubresourceStatus = object("apiextensions/v1.CustomResourceSubresourceStatus", {});

export const customResourceSubresourceScale = object("apiextensions/v1.CustomResourceSubresourceScale", {
  specReplicasPath: required(1, string),
  statusReplicasPath: required(2, string),
  labelSelectorPath: pointer(3, string),
});
export type CustomResourceSubresourceScale = Infer<typeof customResourceSubresourceScale>;

export const customResourceSubresources = object("apiextensions/v1.CustomResourceSubresources", {
  status: pointer(1, customResourceSubresourceStatus),
  scale: pointer(2, customResourceSubresourceScale),
});
export type CustomResourceSubresources = Infer<typeof customResourceSubresources>;

export const customResourceColumnDefinition = object("apiextensions/v1.CustomResourceColumnDefinition", {
  name: required(1, string),
  type: required(2, string),
  format: optional(3, string),
  description: optional(4, string),
  priority: optional(5, int32),
  jsonPath: required(6, string),
});
export type CustomResourceColumnDefinition = Infer<typeof customResourceColumnDefinition>;

export const selectableField = object("apiextensions/v1.SelectableField", {
  jsonPath: required(1, string),
});
export type SelectableField = Infer<typeof selectableField>;

export const customResourceDefinitionVersion = object("apiextensions/v1.CustomResourceDefinitionVersion", {
  name: required(1, string),
  served: required(2, boolean),
  storage: required(3, boolean),
  deprecated: optional(7, boolean),
  deprecationWarning: pointer(8, string),
  schema: pointer(4, customResourceValidation),
  subresources: pointer(5, customResourceSubresources),
  additionalPrinterColumns: optional(6, list(customResourceColumnDefinition)),
  selectableFields: optional(9, list(selectableField)),
});
export type CustomResourceDefinitionVersion = Infer<typeof customResourceDefinitionVersion>;

export const customResourceDefinitionNames = object("apiextensions/v1.CustomResourceDefinitionNames", {
  plural: required(1, string),
  singular: optional(2, string),
  shortNames: optional(3, list(string)),
  kind: required(4, string),
  listKind: optional(5, string),
  categories: optional(6, list(string)),
});
export type CustomResourceDefinitionNames = Infer<typeof customResourceDefinitionNames>;

export const customResourceDefinitionSpec = object("apiextensions/v1.CustomResourceDefinitionSpec", {
  group: required(1, string),
  names: required(3, customResourceDefinitionNames),
  scope: required(4, named("v1.ResourceScope", string)),
  versions: required(7, list(customResourceDefinitionVersion)),
  conversion: pointer(9, customResourceConversion),
  preserveUnknownFields: optional(10, boolean),
});
export type CustomResourceDefinitionSpec = Infer<typeof customResourceDefinitionSpec>;

export const customResourceDefinitionCondition = object("apiextensions/v1.CustomResourceDefinitionCondition", {
  type: required(1, named("v1.CustomResourceDefinitionConditionType", string)),
  status: required(2, named("v1.ConditionStatus", documentedEnum("True", "False", "Unknown"))),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type CustomResourceDefinitionCondition = Infer<typeof customResourceDefinitionCondition>;

export const customResourceDefinitionStatus = object("apiextensions/v1.CustomResourceDefinitionStatus", {
  conditions: optional(1, listMap(customResourceDefinitionCondition, "type"), { emitEmpty: true }),
  acceptedNames: optional(2, customResourceDefinitionNames, { emitEmpty: true }),
  storedVersions: optional(3, list(string), { emitEmpty: true }),
});
export type CustomResourceDefinitionStatus = Infer<typeof customResourceDefinitionStatus>;

export const customResourceDefinition = object("apiextensions/v1.CustomResourceDefinition", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, customResourceDefinitionSpec),
  status: optional(3, customResourceDefinitionStatus),
});
export type CustomResourceDefinition = Infer<typeof customResourceDefinition>;
