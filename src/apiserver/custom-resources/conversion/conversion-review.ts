/** Encodes requests to conversion webhooks and validates their responses: `ConversionReview` v1 and v1beta1. */

import type { JsonObject } from "../../../api/kind.ts";
import { validateAnnotations, validateLabels } from "../../../api/meta/validation/object-meta.ts";
import { stringifyExact } from "../../../schema/json/exact-numbers.ts";
import { type FieldError, renderFieldError } from "../../../schema/validation/field-error.ts";
import { checkRootMembers, checkValues } from "../../../schema/value/check-values.ts";
import { valuesMax } from "../../../schema/value/limits.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { ConversionFailure } from "./conversion-metrics.ts";

const GROUP = "apiextensions.k8s.io";
const KIND = "ConversionReview";
const VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof VERSIONS)[number];

/** An invalid response. The message follows `conversion webhook for …, Kind=… `. */
export class InvalidConversionResponse extends Error {
  override readonly name = "BadAnswer";
  readonly failure: ConversionFailure;

  constructor(failure: ConversionFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}

/** The first accepted version that this server supports. */
export function selectReviewVersion(accepted: readonly string[]): ReviewVersion | undefined {
  return accepted.find((version): version is ReviewVersion => VERSIONS.some((known) => known === version));
}

/** `objects` are serialized JSON. */
export function encodeConversionReview(
  version: ReviewVersion,
  uid: string,
  desiredAPIVersion: string,
  objects: readonly string[],
): string {
  const head = JSON.stringify({ uid, desiredAPIVersion }).slice(0, -1);
  const review = JSON.stringify({ kind: KIND, apiVersion: `${GROUP}/${version}` }).slice(0, -1);
  return `${review},"request":${head},"objects":[${objects.join(",")}]}}`;
}

/** The converted objects of a response, as many as requested, not validated. Throws `InvalidConversionResponse`. */
export function parseConversionResponse(
  body: unknown,
  version: ReviewVersion,
  uid: string,
  count: number,
): readonly unknown[] {
  const malformed = (why: string): InvalidConversionResponse =>
    new InvalidConversionResponse("conversion_webhook_malformed_response_failure", `failed: ${why}`);
  const { apiVersion, kind, response }: JsonObject = isPlainObject(body) ? body : {};
  // v1beta1 does not require apiVersion, kind and uid in the response.
  if (version === "v1" && !isReview(apiVersion, kind)) {
    const found = typeof apiVersion === "string" && apiVersion !== "" ? apiVersion : "/";
    const name = typeof kind === "string" ? kind : "";
    throw malformed(`expected webhook response of ${GROUP}/v1, Kind=${KIND}, got ${found}, Kind=${name}`);
  }
  if (!isPlainObject(response)) throw malformed("no response provided");
  if (version === "v1" && response.uid !== uid) {
    throw malformed(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid ?? "")}`);
  }
  const { status = "", message }: JsonObject = isPlainObject(response.result) ? response.result : {};
  if (status !== "Success") {
    const why = typeof message === "string" && message !== "" ? message : undefined;
    throw malformed(why ?? `response.result.status was '${String(status)}', not 'Success'`);
  }
  const objects: readonly unknown[] = Array.isArray(response.convertedObjects) ? response.convertedObjects : [];
  if (objects.length !== count) {
    const why = `returned ${objects.length} objects, expected ${count}`;
    throw new InvalidConversionResponse("conversion_webhook_partial_response_failure", why);
  }
  return objects;
}

/** Accepts the project's group alias as well. */
function isReview(apiVersion: unknown, kind: unknown): boolean {
  return kind === KIND && (apiVersion === `${GROUP}/v1` || apiVersion === "apiextensions.svc.io/v1");
}

/** The position of an object in its call. */
export interface Position {
  readonly index: number;
  readonly count: number;
}

/**
 * Validates a converted object and restores the metadata that a webhook must not change. Throws
 * `InvalidConversionResponse`.
 */
export function validateConvertedObject(
  original: JsonObject,
  converted: unknown,
  apiVersion: string,
  { index, count }: Position,
): JsonObject {
  const invalidObject = (what: string): InvalidConversionResponse =>
    new InvalidConversionResponse("conversion_webhook_invalid_converted_object_failure", `returned ${what}`);
  const many = count > 1;
  const invalid = `invalid ${many ? "converted object" : "object"}`;
  const at = `${invalid} at index ${index}`;
  if (!isPlainObject(converted) || typeof converted.kind !== "string") {
    throw invalidObject(`${at}: Object 'Kind' is missing in '${stringifyExact(converted)}'`);
  }
  if (converted.apiVersion !== apiVersion) {
    const received = typeof converted.apiVersion === "string" ? converted.apiVersion : "";
    throw invalidObject(`${at}: invalid groupVersion (expected ${apiVersion}, received ${received})`);
  }
  if (converted.kind !== original.kind) {
    throw invalidObject(`${at}: invalid kind (expected ${String(original.kind)}, received ${converted.kind})`);
  }
  try {
    checkSize(original, converted);
  } catch (error) {
    throw invalidObject(`${at}: ${(error as Error).message}`);
  }
  const difference = metadataDifference(original, converted);
  if (difference !== undefined) throw invalidObject(`${many ? at : invalid}: ${difference}`);
  try {
    return { ...converted, metadata: restoreMetadata(original.metadata, converted.metadata) };
  } catch (error) {
    throw invalidObject(`invalid metadata${many ? ` in object at index ${index}` : ""}: ${(error as Error).message}`);
  }
}

/**
 * The bounds of a body, so that no webhook makes requests for objects slower than other clients can. Throws a
 * `TooManyValuesError`.
 */
function checkSize(original: JsonObject, converted: JsonObject): void {
  const [before, after] = [contentOf(original), contentOf(converted)];
  checkRootMembers(after, before);
  checkValues(after, before, valuesMax);
}

/** What a webhook may change. */
function contentOf(object: JsonObject): JsonObject {
  const { labels, annotations }: JsonObject = isPlainObject(object.metadata) ? object.metadata : {};
  return { ...object, metadata: { labels, annotations } };
}

const IMMUTABLE_METADATA = [
  ["name", "name"],
  ["namespace", "namespace"],
  ["uid", "UID"],
] as const;

function metadataDifference(original: JsonObject, made: JsonObject): string | undefined {
  for (const [member, word] of IMMUTABLE_METADATA) {
    const [before, after] = [textIn(original.metadata, member), textIn(made.metadata, member)];
    if (before !== after) return `must have the same ${word}: ${before} != ${after}`;
  }
  return undefined;
}

function textIn(metadata: unknown, member: string): string {
  const value = isPlainObject(metadata) ? metadata[member] : undefined;
  return typeof value === "string" ? value : "";
}

/** Webhooks may change labels and annotations only. Throws an `Error` for invalid ones. */
function restoreMetadata(original: unknown, made: unknown): JsonObject {
  if (made === undefined) throw new Error("missing metadata in converted object");
  if (!isPlainObject(made)) throw new Error(`invalid metadata of type ${goType(made)} in converted object`);
  const {
    labels: oldLabels,
    annotations: oldAnnotations,
    ...rest
  }: JsonObject = isPlainObject(original) ? original : {};
  const labels = validateStringMap("labels", oldLabels, made.labels, (texts) =>
    validateLabels(texts, "metadata.labels"),
  );
  const annotations = validateStringMap("annotations", oldAnnotations, made.annotations, (texts) => {
    return validateAnnotations(texts, "metadata.annotation");
  });
  return {
    ...rest,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

type StringMap = Readonly<Record<string, string>>;

/** Validates only changed maps: unchanged ones may predate the validation. */
function validateStringMap(
  member: string,
  before: unknown,
  after: unknown,
  validate: (texts: StringMap) => readonly FieldError[],
): StringMap | undefined {
  if (after === undefined || after === null) return undefined;
  if (!isPlainObject(after)) {
    throw new Error(`invalid metadata.${member} of type ${goType(after)} in converted object`);
  }
  const old: JsonObject = isPlainObject(before) ? before : {};
  const entries = Object.entries(after);
  for (const [name, value] of entries) {
    if (typeof value === "string") continue;
    throw new Error(`metadata.${member}[${name}] must be a string, but is ${goType(value)} in converted object`);
  }
  const isSame = entries.length === Object.keys(old).length && entries.every(([name, value]) => old[name] === value);
  const errors = isSame ? [] : validate(after as StringMap);
  if (errors.length > 0)
    throw new Error(joinErrors(errors.map((error) => `${error.field}: ${renderFieldError(error)}`)));
  return after as StringMap;
}

function joinErrors(texts: readonly string[]): string {
  const once = [...new Set(texts)];
  return once.length === 1 ? once[0]! : `[${once.join(", ")}]`;
}

/** The Go type of a JSON value. */
function goType(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int64";
    case "number":
      return Number.isInteger(value) ? "int64" : "float64";
    case "string":
      return "string";
    default:
      return "map[string]interface {}";
  }
}
