/** What a conversion webhook is asked and what it answers: `ConversionReview` of either version. */
import type { JsonObject } from "../../../api/kind.ts";
import { validateAnnotations, validateLabels } from "../../../api/meta/validation/object-meta.ts";
import { type FieldError, renderFieldError } from "../../../schema/validation/field-error.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { ConversionFailure } from "./conversion-metrics.ts";

const GROUP = "apiextensions.k8s.io";
const KIND = "ConversionReview";
const VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof VERSIONS)[number];

/** An answer that is none. Its text goes on behind `conversion webhook for …, Kind=… `. */
export class InvalidConversionResponse extends Error {
  override readonly name = "BadAnswer";
  readonly failure: ConversionFailure;

  constructor(failure: ConversionFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}

/** The first one that this server speaks; undefined where there is none. */
export function selectReviewVersion(accepted: readonly string[]): ReviewVersion | undefined {
  return accepted.find((version): version is ReviewVersion => VERSIONS.some((known) => known === version));
}

/** `objects` are JSON texts. */
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

/** As many objects as were asked about, of whatever form. Throws a `BadAnswer`. */
export function parseConversionResponse(
  answer: unknown,
  version: ReviewVersion,
  uid: string,
  count: number,
): readonly unknown[] {
  const malformed = (why: string): InvalidConversionResponse =>
    new InvalidConversionResponse("conversion_webhook_malformed_response_failure", `failed: ${why}`);
  const { apiVersion, kind, response }: JsonObject = isPlainObject(answer) ? answer : {};
  // The older version never had to say what it answers.
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

/** Whoever uses this project's own spelling means the same. */
function isReview(apiVersion: unknown, kind: unknown): boolean {
  return kind === KIND && (apiVersion === `${GROUP}/v1` || apiVersion === "apiextensions.svc.io/v1");
}

/** Where an object stands among those of its call. */
export interface Position {
  readonly index: number;
  readonly count: number;
}

/**
 * What a webhook made of `original`, with the metadata that is not its to change. Throws a `BadAnswer` for what cannot
 * be the same object.
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
    throw invalidObject(`${at}: Object 'Kind' is missing in '${JSON.stringify(converted)}'`);
  }
  if (converted.apiVersion !== apiVersion) {
    const received = typeof converted.apiVersion === "string" ? converted.apiVersion : "";
    throw invalidObject(`${at}: invalid groupVersion (expected ${apiVersion}, received ${received})`);
  }
  if (converted.kind !== original.kind) {
    throw invalidObject(`${at}: invalid kind (expected ${String(original.kind)}, received ${converted.kind})`);
  }
  const difference = metadataDifference(original, converted);
  if (difference !== undefined) throw invalidObject(`${many ? at : invalid}: ${difference}`);
  try {
    return { ...converted, metadata: restoreMetadata(original.metadata, converted.metadata) };
  } catch (error) {
    throw invalidObject(`invalid metadata${many ? ` in object at index ${index}` : ""}: ${(error as Error).message}`);
  }
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

/** Labels and annotations are the webhook's, all else is as it was. Throws an `Error` for what these cannot be. */
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

/** Only what has changed has to be valid: what was there may be older than the rules. */
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

/** The type that a value of JSON has in Go. */
function goType(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "number":
      return Number.isInteger(value) ? "int64" : "float64";
    case "string":
      return "string";
    default:
      return "map[string]interface {}";
  }
}
