import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type SelfSubjectRulesReview, selfSubjectRulesReview } from "./self-subject-rules-review.ts";

export const selfSubjectRulesReviewKind: Kind<SelfSubjectRulesReview> = {
  group: "authorization.svc.io",
  version: "v1",
  kind: "SelfSubjectRulesReview",
  listKind: "SelfSubjectRulesReviewList",
  plural: "selfsubjectrulesreviews",
  singular: "selfsubjectrulesreview",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: selfSubjectRulesReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
