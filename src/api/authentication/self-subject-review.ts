import { object, optional } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";
import { userInfo } from "./user-info.ts";

export const selfSubjectReviewStatus = object("authentication/v1.SelfSubjectReviewStatus", {
  userInfo: optional(1, userInfo),
});
export type SelfSubjectReviewStatus = Infer<typeof selfSubjectReviewStatus>;

export const selfSubjectReview = object("authentication/v1.SelfSubjectReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  status: optional(2, selfSubjectReviewStatus),
});
export type SelfSubjectReview = Infer<typeof selfSubjectReview>;
