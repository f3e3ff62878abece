import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type TokenReview, tokenReview } from "./token-review.ts";

export const tokenReviewKind: Kind<TokenReview> = {
  group: "authentication.svc.io",
  version: "v1",
  kind: "TokenReview",
  listKind: "TokenReviewList",
  plural: "tokenreviews",
  singular: "tokenreview",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: tokenReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
