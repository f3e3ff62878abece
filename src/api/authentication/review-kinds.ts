import { reviewKind } from "../review-kind.ts";
import { type SelfSubjectReview, selfSubjectReview } from "./self-subject-review.ts";
import { type TokenReview, tokenReview } from "./token-review.ts";

const names = { group: "authentication.svc.io", version: "v1", namespaced: false } as const;

export const tokenReviewKind = reviewKind<TokenReview>({ ...names, kind: "TokenReview", schema: tokenReview });

export const selfSubjectReviewKind = reviewKind<SelfSubjectReview>({
  ...names,
  kind: "SelfSubjectReview",
  schema: selfSubjectReview,
});
