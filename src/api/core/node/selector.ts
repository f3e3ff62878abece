import {
  boolean,
  documentedEnum,
  inline,
  list,
  object,
  optional,
  pointer,
  quantity,
  required,
  string,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { localObjectReference } from "../references/object-reference.ts";

export const nodeSelectorRequirement = object("core/v1.NodeSelectorRequirement", {
  key: required(1, string),
  operator: required(2, documentedEnum("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
  values: optional(3, list(string)),
});
export type NodeSelectorRequirement = Infer<typeof nodeSelectorRequirement>;

export const nodeSelectorTerm = object(
  "core/v1.NodeSelectorTerm",
  {
    matchExpressions: optional(1, list(nodeSelectorRequirement)),
    matchFields: optional(2, list(nodeSelectorRequirement)),
  },
  { atomic: true },
);
export type NodeSelectorTerm = Infer<typeof nodeSelectorTerm>;

export const nodeSelector = object(
  "core/v1.NodeSelector",
  {
    nodeSelectorTerms: required(1, list(nodeSelectorTerm)),
  },
  { atomic: true },
);
export type NodeSelector = Infer<typeof nodeSelector>;

export const objectFieldSelector = object(
  "core/v1.ObjectFieldSelector",
  {
    apiVersion: optional(1, string),
    fieldPath: required(2, string),
  },
  { atomic: true },
);
export type ObjectFieldSelector = Infer<typeof objectFieldSelector>;

export const resourceFieldSelector = object(
  "core/v1.ResourceFieldSelector",
  {
    containerName: optional(1, string),
    resource: required(2, string),
    divisor: optional(3, quantity),
  },
  { atomic: true },
);
export type ResourceFieldSelector = Infer<typeof resourceFieldSelector>;

export const configMapKeySelector = object(
  "core/v1.ConfigMapKeySelector",
  {
    localObjectReference: inline(1, localObjectReference),
    key: required(2, string),
    optional: pointer(3, boolean),
  },
  { atomic: true },
);
export type ConfigMapKeySelector = Infer<typeof configMapKeySelector>;

export const secretKeySelector = object(
  "core/v1.SecretKeySelector",
  {
    localObjectReference: inline(1, localObjectReference),
    key: required(2, string),
    optional: pointer(3, boolean),
  },
  { atomic: true },
);
export type SecretKeySelector = Infer<typeof secretKeySelector>;
