/** ConversionReview: request and response of conversion webhooks. */
import { list, named, object, pointer, rawExtension, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { statusResponse } from "../meta/response-types.ts";
import { typeMeta } from "../meta/type-meta.ts";

export const conversionRequest = object("apiextensions/v1.ConversionRequest", {
  uid: required(1, named("types.UID", string)),
  desiredAPIVersion: required(2, string),
  objects: required(3, list(rawExtension)),
});
export type ConversionRequest = Infer<typeof conversionRequest>;

export const conversionResponse = object("apiextensions/v1.ConversionResponse", {
  uid: required(1, named("types.UID", string)),
  convertedObjects: required(2, list(rawExtension)),
  result: required(3, statusResponse),
});
export type ConversionResponse = Infer<typeof conversionResponse>;

export const conversionReview = object("apiextensions/v1.ConversionReview", {
  ...typeMeta,
  request: pointer(1, conversionRequest),
  response: pointer(2, conversionResponse),
});
export type ConversionReview = Infer<typeof conversionReview>;
