import { int64, list, named, object, optional, pointer, required, string, time } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { objectMeta } from "../meta/object-meta.ts";
import { typeMeta } from "../meta/type-meta.ts";

export const boundObjectReference = object("authentication/v1.BoundObjectReference", {
  kind: optional(1, string),
  apiVersion: optional(2, string),
  name: optional(3, string),
  uid: optional(4, named("types.UID", string)),
});
export type BoundObjectReference = Infer<typeof boundObjectReference>;

export const tokenRequestSpec = object("authentication/v1.TokenRequestSpec", {
  audiences: required(1, list(string)),
  expirationSeconds: pointer(4, int64, { emitEmpty: true }),
  boundObjectRef: pointer(3, boundObjectReference, { emitEmpty: true }),
});
export type TokenRequestSpec = Infer<typeof tokenRequestSpec>;

export const tokenRequestStatus = object("authentication/v1.TokenRequestStatus", {
  token: required(1, string),
  expirationTimestamp: required(2, time),
});
export type TokenRequestStatus = Infer<typeof tokenRequestStatus>;

export const tokenRequest = object("authentication/v1.TokenRequest", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, tokenRequestSpec),
  status: optional(3, tokenRequestStatus),
});
export type TokenRequest = Infer<typeof tokenRequest>;
