import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type SubjectAccessReview, subjectAccessReview } from "./access-review.ts";

export const subjectAccessReviewKind: Kind<SubjectAccessReview> = {
  group: "authorization.svc.io",
  version: "v1",
  kind: "SubjectAccessReview",
  listKind: "SubjectAccessReviewList",
  plural: "subjectaccessreviews",
  singular: "subjectaccessreview",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: subjectAccessReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
