import { createReviewKind } from "../../review-kind.ts";
import {
  type LocalSubjectAccessReview,
  localSubjectAccessReview,
  type SelfSubjectAccessReview,
  type SubjectAccessReview,
  selfSubjectAccessReview,
  subjectAccessReview,
} from "./schema.ts";
import { type SelfSubjectRulesReview, selfSubjectRulesReview } from "./self-subject-rules-review.ts";
import { validateLocalAccess, validateSelfAccess, validateSubjectAccess } from "./validation.ts";

const names = { group: "authorization.svc.io", version: "v1" } as const;

export const subjectAccessReviewKind = createReviewKind<SubjectAccessReview>({
  ...names,
  kind: "SubjectAccessReview",
  namespaced: false,
  schema: subjectAccessReview,
  validate: validateSubjectAccess,
});

export const localSubjectAccessReviewKind = createReviewKind<LocalSubjectAccessReview>({
  ...names,
  kind: "LocalSubjectAccessReview",
  namespaced: true,
  schema: localSubjectAccessReview,
  validate: validateLocalAccess,
});

export const selfSubjectAccessReviewKind = createReviewKind<SelfSubjectAccessReview>({
  ...names,
  kind: "SelfSubjectAccessReview",
  namespaced: false,
  schema: selfSubjectAccessReview,
  validate: validateSelfAccess,
});

export const selfSubjectRulesReviewKind = createReviewKind<SelfSubjectRulesReview>({
  ...names,
  kind: "SelfSubjectRulesReview",
  namespaced: false,
  schema: selfSubjectRulesReview,
});
