import { boolean, list, object, optional, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";
import { userInfo } from "./user-info.ts";

export const tokenReviewSpec = object("authentication/v1.TokenReviewSpec", {
  token: optional(1, string),
  audiences: optional(2, list(string)),
});
export type TokenReviewSpec = Infer<typeof tokenReviewSpec>;

export const tokenReviewStatus = object("authentication/v1.TokenReviewStatus", {
  authenticated: optional(1, boolean),
  user: optional(2, userInfo),
  audiences: optional(4, list(string)),
  error: optional(3, string),
});
export type TokenReviewStatus = Infer<typeof tokenReviewStatus>;

export const tokenReview = object("authentication/v1.TokenReview", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, tokenReviewSpec),
  status: optional(3, tokenReviewStatus),
});
export type TokenReview = Infer<typeof tokenReview>;
