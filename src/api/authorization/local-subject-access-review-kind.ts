import { ageColumn, nameColumn } from "../columns.ts";
import type { Kind } from "../kind.ts";
import { type LocalSubjectAccessReview, localSubjectAccessReview } from "./access-review.ts";

export const localSubjectAccessReviewKind: Kind<LocalSubjectAccessReview> = {
  group: "authorization.svc.io",
  version: "v1",
  kind: "LocalSubjectAccessReview",
  listKind: "LocalSubjectAccessReviewList",
  plural: "localsubjectaccessreviews",
  singular: "localsubjectaccessreview",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: ["create"],
  subresources: [],
  storageName: "",
  schema: localSubjectAccessReview,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
