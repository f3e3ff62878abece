import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type SelfSubjectAccessReview, selfSubjectAccessReview } from "./access-review.ts";

export const selfSubjectAccessReviewKind: Kind<SelfSubjectAccessReview> = {
  group: "authorization.svc.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  listKind: "SelfSubjectAccessReviewList",
  plural: "selfsubjectaccessreviews",
  singular: "selfsubjectaccessreview",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: selfSubjectAccessReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
