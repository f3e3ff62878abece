import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type SelfSubjectReview, selfSubjectReview } from "./self-subject-review.ts";

export const selfSubjectReviewKind: Kind<SelfSubjectReview> = {
  group: "authentication.svc.io",
  version: "v1",
  kind: "SelfSubjectReview",
  listKind: "SelfSubjectReviewList",
  plural: "selfsubjectreviews",
  singular: "selfsubjectreview",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: selfSubjectReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
