import { boolean, list, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const selfSubjectRulesReviewSpec = object("authorization/v1.SelfSubjectRulesReviewSpec", {
  namespace: optional(1, string),
});
export type SelfSubjectRulesReviewSpec = Infer<typeof selfSubjectRulesReviewSpec>;

export const resourceRule = object("authorization/v1.ResourceRule", {
  verbs: required(1, list(string)),
  apiGroups: optional(2, list(string)),
  resources: optional(3, list(string)),
  resourceNames: optional(4, list(string)),
});
export type ResourceRule = Infer<typeof resourceRule>;

export const nonResourceRule = object("authorization/v1.NonResourceRule", {
  verbs: required(1, list(string)),
  nonResourceURLs: optional(2, list(string)),
});
export type NonResourceRule = Infer<typeof nonResourceRule>;

export const subjectRulesReviewStatus = object("authorization/v1.SubjectRulesReviewStatus", {
  resourceRules: required(1, list(resourceRule)),
  nonResourceRules: required(2, list(nonResourceRule)),
  incomplete: required(3, boolean),
  evaluationError: optional(4, string),
});
export type SubjectRulesReviewStatus = Infer<typeof subjectRulesReviewStatus>;

export const selfSubjectRulesReview = object("authorization/v1.SelfSubjectRulesReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, selfSubjectRulesReviewSpec),
  status: optional(3, subjectRulesReviewStatus),
});
export type SelfSubjectRulesReview = Infer<typeof selfSubjectRulesReview>;
