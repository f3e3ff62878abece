/** Encodes and decodes `AdmissionReview` v1 and v1beta1. */

import type { ApiObject } from "../../api/kind.ts";
import { type StatusDetails, StatusError } from "../../api/status.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { type EquivalentResource, encodeJson } from "../matching/equivalent-resource.ts";

type Json = Readonly<Record<string, unknown>>;

const GROUP = "admission.k8s.io";
const VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof VERSIONS)[number];

/** The first version that this server supports. Throws an `Error` if there is none. */
export function selectReviewVersion(accepted: readonly string[]): ReviewVersion {
  const found = accepted.find((version): version is ReviewVersion => VERSIONS.some((known) => known === version));
  if (found === undefined) throw new Error("webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  return found;
}

export interface ReviewObjects {
  /** As JSON in the version that the webhook receives; null if there is none. */
  readonly object: Json | null;
  readonly oldObject: Json | null;
}

export function encodeObjects(
  resource: EquivalentResource,
  object: ApiObject | undefined,
  oldObject: ApiObject | undefined,
): ReviewObjects {
  return {
    object: object === undefined ? null : encodeJson(resource, object),
    oldObject: oldObject === undefined ? null : encodeJson(resource, oldObject),
  };
}

export function encodeReview(
  version: ReviewVersion,
  uid: string,
  fields: Json,
  { object, oldObject }: ReviewObjects,
): string {
  const { dryRun, options, ...first } = fields;
  const request = { uid, ...first, object, oldObject, dryRun, options };
  return stringifyExact({ kind: "AdmissionReview", apiVersion: `${GROUP}/${version}`, request });
}

export interface ReviewResponse {
  readonly allowed: boolean;
  /** A JSON patch as JSON text; empty if there is none. */
  readonly patch: Buffer;
  readonly status: Json | undefined;
  readonly auditAnnotations: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/** Throws an `Error` for an invalid response. */
export function decodeReview(review: unknown, version: ReviewVersion, uid: string, mutating: boolean): ReviewResponse {
  if (!isPlainObject(review)) throw new Error("webhook response was absent");
  const { apiVersion, kind, response } = review;
  if (!isPlainObject(response)) throw new Error("webhook response was absent");
  // A v1beta1 response may omit kind, apiVersion and uid.
  if (version === "v1") checkIdentity(response, apiVersion, kind, uid);
  const patch = stringIn(response, "patch");
  const patchType = response.patchType ?? undefined;
  if (version === "v1") checkPatch(patch, patchType, mutating);
  const { allowed = false, status, auditAnnotations, warnings } = response;
  if (typeof allowed !== "boolean") throw new Error("response.allowed: expected true or false");
  if (status !== undefined && status !== null && !isPlainObject(status)) {
    throw new Error("response.status: expected an object");
  }
  return {
    allowed,
    patch: mutating ? Buffer.from(patch, "base64") : Buffer.alloc(0),
    status: status ?? undefined,
    auditAnnotations: stringsIn(auditAnnotations),
    warnings: Array.isArray(warnings) ? warnings.filter((one) => typeof one === "string") : [],
  };
}

function checkIdentity(response: Json, apiVersion: unknown, kind: unknown, uid: string): void {
  if (response.uid !== uid) {
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid ?? "")}`);
  }
  // The alias of the group in this project is accepted too.
  if (kind === "AdmissionReview" && (apiVersion === `${GROUP}/v1` || apiVersion === "admission.svc.io/v1")) return;
  const found = typeof apiVersion === "string" && apiVersion !== "" ? apiVersion : "/";
  const expected = `${GROUP}/v1, Kind=AdmissionReview`;
  throw new Error(`expected webhook response of ${expected}, got ${found}, Kind=${kind ?? ""}`);
}

function checkPatch(patch: string, patchType: unknown, mutating: boolean): void {
  if (!mutating) {
    if (patch !== "") throw new Error("validating webhook may not return response.patch");
    if (patchType !== undefined) throw new Error("validating webhook may not return response.patchType");
    return;
  }
  if (patch !== "" && patchType === undefined) {
    throw new Error("webhook returned response.patch but not response.patchType");
  }
  if (patchType === undefined) return;
  if (patch === "") throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw new Error('webhook returned invalid response.patchType of ""');
  if (patchType !== "JSONPatch") throw new Error(`unsupported patch type ${JSON.stringify(patchType)}`);
}

function stringIn(response: Json, name: string): string {
  const value = response[name] ?? "";
  if (typeof value !== "string") throw new Error(`response.${name}: expected text`);
  return value;
}

function stringsIn(value: unknown): Readonly<Record<string, string>> {
  if (!isPlainObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

const BAD_REQUEST = 400;

/** The error for the client: the webhook's status, whose code is at least 400. */
export function denial(webhook: string, status: Json = {}): StatusError {
  const { code, reason, message, details, metadata } = status;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const explanation = [message, reason].find((text) => typeof text === "string" && text !== "");
  return new StatusError(
    typeof code === "number" && code >= BAD_REQUEST ? code : BAD_REQUEST,
    typeof reason === "string" ? reason : "",
    explanation === undefined ? `${denied} without explanation` : `${denied}: ${explanation}`,
    {
      ...(isPlainObject(details) ? { details: details as StatusDetails } : {}),
      ...(isPlainObject(metadata) ? { metadata } : {}),
    },
  );
}
