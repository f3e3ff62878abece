import { boolean, list, map, named, object, optional, pointer, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { fieldSelectorRequirement, labelSelectorRequirement } from "../../meta/label-selector.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const fieldSelectorAttributes = object("authorization/v1.FieldSelectorAttributes", {
  rawSelector: optional(1, string),
  requirements: optional(2, list(fieldSelectorRequirement)),
});
export type FieldSelectorAttributes = Infer<typeof fieldSelectorAttributes>;

export const labelSelectorAttributes = object("authorization/v1.LabelSelectorAttributes", {
  rawSelector: optional(1, string),
  requirements: optional(2, list(labelSelectorRequirement)),
});
export type LabelSelectorAttributes = Infer<typeof labelSelectorAttributes>;

export const resourceAttributes = object("authorization/v1.ResourceAttributes", {
  namespace: optional(1, string),
  verb: optional(2, string),
  group: optional(3, string),
  version: optional(4, string),
  resource: optional(5, string),
  subresource: optional(6, string),
  name: optional(7, string),
  fieldSelector: pointer(8, fieldSelectorAttributes),
  labelSelector: pointer(9, labelSelectorAttributes),
});
export type ResourceAttributes = Infer<typeof resourceAttributes>;

export const nonResourceAttributes = object("authorization/v1.NonResourceAttributes", {
  path: optional(1, string),
  verb: optional(2, string),
});
export type NonResourceAttributes = Infer<typeof nonResourceAttributes>;

export const subjectAccessReviewSpec = object("authorization/v1.SubjectAccessReviewSpec", {
  resourceAttributes: pointer(1, resourceAttributes),
  nonResourceAttributes: pointer(2, nonResourceAttributes),
  user: optional(3, string),
  groups: optional(4, list(string)),
  extra: optional(5, map(named("v1.ExtraValue", list(string)))),
  uid: optional(6, string),
});
export type SubjectAccessReviewSpec = Infer<typeof subjectAccessReviewSpec>;

export const subjectAccessReviewStatus = object("authorization/v1.SubjectAccessReviewStatus", {
  allowed: required(1, boolean),
  denied: optional(4, boolean),
  reason: optional(2, string),
  evaluationError: optional(3, string),
});
export type SubjectAccessReviewStatus = Infer<typeof subjectAccessReviewStatus>;

export const localSubjectAccessReview = object("authorization/v1.LocalSubjectAccessReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, subjectAccessReviewSpec),
  status: optional(3, subjectAccessReviewStatus),
});
export type LocalSubjectAccessReview = Infer<typeof localSubjectAccessReview>;

export const selfSubjectAccessReviewSpec = object("authorization/v1.SelfSubjectAccessReviewSpec", {
  resourceAttributes: pointer(1, resourceAttributes),
  nonResourceAttributes: pointer(2, nonResourceAttributes),
});
export type SelfSubjectAccessReviewSpec = Infer<typeof selfSubjectAccessReviewSpec>;

export const selfSubjectAccessReview = object("authorization/v1.SelfSubjectAccessReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, selfSubjectAccessReviewSpec),
  status: optional(3, subjectAccessReviewStatus),
});
export type SelfSubjectAccessReview = Infer<typeof selfSubjectAccessReview>;

export const subjectAccessReview = object("authorization/v1.SubjectAccessReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, subjectAccessReviewSpec),
  status: optional(3, subjectAccessReviewStatus),
});
export type SubjectAccessReview = Infer<typeof subjectAccessReview>;
