/** Reads patches, and decodes the patched objects. */
import type { JsonPatchOperation } from "../../api/json-patch.ts";
import type { ApiObject } from "../../api/kind.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import type { HttpRequest } from "../../http/message.ts";
import type { Patch } from "../../registry/patches/apply-patch.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { parseExact } from "../../schema/json/exact-numbers.ts";
import { type ParsedJson, parseJsonInSteps } from "../../schema/json/parse.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { checkRootMembers } from "../../schema/value/check-values.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { NumberLiteral } from "../../schema/value/number-literal.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { runInSlices } from "../../std/async/steps.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { RequestContext } from "../request/request-context.ts";
import { notAcceptable } from "../responses/status-response.ts";
import { APPLY_CBOR_TYPE, APPLY_TYPE } from "./apply.ts";
import { checkPatchedType, decodeObject, unsupportedBody, withoutPosition } from "./body.ts";
import type { ExpectedBody } from "./body-kind.ts";
import { type FieldValidation, parseWriteQuery, type WriteQuery } from "./query.ts";
import { readLimitedBody } from "./read-body.ts";

const PATCH_TYPES = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
} as const;

type PatchType = Exclude<Patch["type"], "malformed">;

export interface PatchBody extends WriteQuery {
  readonly patch: Patch;
  /** The patch can contain a `NumberLiteral`. */
  readonly literals?: boolean | undefined;
  /** What field validation finds in the patch itself. */
  readonly findings: readonly string[];
}

type ParsedPatch = Pick<PatchBody, "patch" | "literals" | "findings">;

/** Reads the patch and its options. Throws 400, 413 or 422. */
export async function readPatchBody(
  context: RequestContext,
  type: PatchType,
  { schema }: Pick<ExpectedBody, "schema">,
): Promise<PatchBody> {
  const bytes = await readLimitedBody(context);
  const query = parseWriteQuery("PatchOptions", context.info.query);
  const slice = new TimeSlice();
  // Custom resources and strategic patches accept each spelling of a number.
  const literals = schema.unstructured !== true && type !== "strategic";
  try {
    const parsed = await parsePatch(bytes, type, query.fieldValidation !== "Ignore", literals, slice);
    if (schema.unstructured === true && "value" in parsed.patch) checkRootMembers(parsed.patch.value);
    context.audit?.setRequestBody(() => bytes.toString());
    await slice.yield();
    return { ...query, ...parsed };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { ...query, patch: { type: "malformed", error }, findings: [] };
  }
}

/** As in Kubernetes, which decodes the patch twice, at first in `strict` mode, and reports the errors of each. */
async function parsePatch(
  bytes: Buffer,
  type: PatchType,
  strict: boolean,
  keepLiterals: boolean,
  slice: TimeSlice,
): Promise<ParsedPatch> {
  let parsed: ParsedJson;
  try {
    parsed = await runInSlices(parseJsonInSteps(bytes, valuesMax, { literals: keepLiterals }), slice);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (type === "merge" && !strict) throw badRequest("Invalid JSON Patch");
    throw decodeError(withoutPosition(error), strict && type !== "strategic");
  }
  const { value, literals } = parsed;
  const duplicates = parsed.duplicates.map((path) => `duplicate field ${goQuote(path)}`);
  if (type === "json") {
    const operations = jsonPatchOperations(value, strict);
    const findings = [...duplicates, ...unknownOperationFields(operations)];
    return { patch: { type, operations }, literals, findings: findings.map((text) => `json patch ${text}`) };
  }
  if (value === null) {
    if (type === "merge") throw badRequest("Invalid JSON Patch");
    return { patch: { type, value: {} }, findings: [] };
  }
  if (!isPlainObject(value)) {
    if (type === "merge" && !strict) {
      // A list replaces the whole object.
      if (Array.isArray(value)) return { patch: { type, value }, literals, findings: [] };
      throw badRequest("Invalid JSON Patch");
    }
    const why = `json: cannot unmarshal ${goType(value)} into Go value of type map[string]interface {}`;
    throw decodeError(why, type !== "strategic");
  }
  return { patch: { type, value }, literals, findings: duplicates };
}

function decodeError(why: string, prefixed: boolean): StatusError {
  return badRequest(prefixed ? `error decoding patch: ${why}` : why);
}

/**
 * The type of the patch in a request. As in Kubernetes the router looks for one of the types in the header, which the
 * handler then compares as a whole, both with case; a request without a body fails later in the router.
 */
export function patchTypeOf({ headers }: Pick<HttpRequest, "headers">, cbor = false): PatchType | "apply" {
  const { "content-type": header = "", "content-length": length } = headers;
  const accepted: readonly string[] = [...Object.keys(PATCH_TYPES), APPLY_TYPE, ...(cbor ? [APPLY_CBOR_TYPE] : [])];
  const isRouted = header.split(",").some((part) => accepted.includes(part.split(";", 1)[0]!.replace(/^ +| +$/g, "")));
  if (!isRouted && Number(length) > 0) {
    throw new StatusError(415, "UnsupportedMediaType", UNSUPPORTED, { details: {} });
  }
  if (!isRouted && length === undefined) {
    throw new StatusError(415, "UnsupportedMediaType", `${UNSUPPORTED}\n\nAvailable representations: `, {
      details: {},
    });
  }
  if (!isRouted) throw notAcceptable([]);
  const type = header.split(";", 1)[0]!;
  if (Object.hasOwn(PATCH_TYPES, type)) return PATCH_TYPES[type as keyof typeof PATCH_TYPES];
  if (accepted.includes(type)) return "apply";
  throw unsupportedBody(accepted);
}

const UNSUPPORTED = "415: Unsupported Media Type";

const OPERATION_FIELDS: ReadonlySet<string> = new Set(["op", "path", "from", "value"]);

function jsonPatchOperations(value: unknown, strict: boolean): readonly JsonPatchOperation[] {
  const [list, item] = strict
    ? ["[]handlers.jsonPatchOp", "handlers.jsonPatchOp"]
    : ["jsonpatch.Patch", "jsonpatch.Operation"];
  const check = (matches: boolean, found: unknown, wanted: string): void => {
    if (!matches) throw decodeError(`json: cannot unmarshal ${goType(found)} into Go ${wanted}`, strict);
  };
  check(value === null || Array.isArray(value), value, `value of type ${list}`);
  const operations = (value ?? []) as readonly unknown[];
  for (const each of operations) {
    if (each === null) continue;
    check(isPlainObject(each), each, `value of type ${item}`);
    for (const [name, member] of Object.entries(each as object)) {
      if (!strict || name === "value" || !OPERATION_FIELDS.has(name)) continue;
      const matches = member === null || typeof member === "string";
      check(matches, member, `struct field jsonPatchOp.${name} of type string`);
    }
  }
  return operations.map((each) => each ?? {});
}

function unknownOperationFields(operations: readonly JsonPatchOperation[]): readonly string[] {
  return operations.flatMap((operation, index) =>
    Object.keys(operation)
      .filter((name) => !OPERATION_FIELDS.has(name))
      .map((name) => `unknown field ${goQuote(`[${index}].${name}`)}`),
  );
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint" || value instanceof NumberLiteral) return "number";
  return typeof value === "boolean" ? "bool" : typeof value;
}

const WITHOUT_NAME = badRequest(
  "the name of the object (default based on URL) was undeterminable: name must be provided",
);

function hasNoVersion(value: unknown): boolean {
  return isPlainObject(value) && (value.apiVersion ?? "") === "";
}

/**
 * The error of an object from which the patch removed the version: Kubernetes then decodes it as a type of which it has
 * no field.
 */
function undecodableWithoutVersion(text: string, validation: FieldValidation, warnings: string[]): StatusError {
  const names = Object.keys(parseExact(text) as object).filter((name) => name !== "kind" && name !== "apiVersion");
  const unknown = names.map((name) => `unknown field ${goQuote(name)}`);
  if (validation === "Strict") return badRequest(`strict decoding error: ${unknown.join(", ")}`);
  if (validation === "Warn") warnings.push(...unknown);
  return WITHOUT_NAME;
}

/** Decodes a patched JSON value. Throws a 422 with the value that `show` returns. */
export function decodePatched<T extends ApiObject>(
  { patch, literals, findings }: PatchBody,
  value: unknown,
  show: (why: string) => DecodeFailure,
  expected: ExpectedBody,
  validation: FieldValidation,
  warnings: string[],
): T {
  try {
    // A strategic merge patch may contain any kind.
    if (patch.type !== "strategic") checkPatchedType(value, expected);
    if (patch.type !== "strategic" && expected.custom !== true && hasNoVersion(value)) {
      throw undecodableWithoutVersion(show("").text, validation, warnings);
    }
    const lenient = validation === "Ignore" ? "Ignore" : "Warn";
    const unordered: string[] = [];
    const converter = patch.type === "strategic";
    const parsed = { value, duplicates: [], converter, ...(literals === true ? { literals } : {}) };
    const object = decodeObject<T>(parsed, expected, lenient, unordered);
    if (validation === "Ignore" || findings.length + unordered.length === 0) return object;
    // Unknown fields are reported in the order of Kubernetes' encoding of the patched object.
    const written = patch.type === "strategic" ? canonicalJson(value) : show("").text;
    const unknown: string[] = [];
    decodeObject<T>({ value: parseExact(written), duplicates: [] }, expected, lenient, unknown);
    const all = [...new Set([...findings, ...unknown])];
    if (validation === "Strict") throw badRequest(`strict decoding error: ${all.join(", ")}`);
    warnings.push(...all);
    return object;
  } catch (error) {
    if (!(error instanceof StatusError) || error === WITHOUT_NAME) throw error;
    const { text, detail } = show(error.message.replace(/^.* cannot be handled as a \w+: /, ""));
    const shown = renderFieldError(invalidField("patch", text, detail));
    throw new StatusError(422, "Invalid", ` "" is invalid: patch: ${shown}`, {
      details: { causes: [{ reason: "FieldValueInvalid", message: shown, field: "patch" }] },
    });
  }
}
