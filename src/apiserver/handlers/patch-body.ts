/** Reads patches, and decodes the patched objects. */
import type { Operation } from "rfc6902";
import type { ApiObject } from "../../api/kind.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { readBody } from "../../http/body.ts";
import type { Patch } from "../../registry/patches/apply-patch.ts";
import type { DecodeFailure } from "../../registry/patches/decode-failure.ts";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import type { RequestContext } from "../request/request-context.ts";
import { APPLY_CBOR_TYPE, APPLY_TYPE } from "./apply.ts";
import { BODY_BYTES_MAX, checkPatchedType, decodeObject, withoutPosition } from "./body.ts";
import type { ExpectedBody } from "./body-kind.ts";
import { type FieldValidation, parseWriteQuery, type WriteQuery } from "./query.ts";

const PATCH_TYPES = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
} as const;

export interface PatchBody extends WriteQuery {
  readonly patch: Patch;
  /** Paths that the patch names more than once. */
  readonly duplicates: readonly string[];
}

/** Reads the patch and its options. Throws 400, 413 or 422. */
export async function readPatchBody(context: RequestContext, type: Patch["type"]): Promise<PatchBody> {
  const bytes = await readBody(context.request, BODY_BYTES_MAX);
  return { ...parseWriteQuery("PatchOptions", context.info.query), ...parsePatch(bytes, type) };
}

function parsePatch(bytes: Buffer, type: Patch["type"]): Pick<PatchBody, "patch" | "duplicates"> {
  let parsed: ReturnType<typeof parseJson>;
  try {
    parsed = parseJson(bytes);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badRequest(type === "strategic" ? withoutPosition(error) : `error decoding patch: ${withoutPosition(error)}`);
  }
  const { value, duplicates } = parsed;
  if (type === "json") return { patch: { type, operations: jsonPatchOperations(value) }, duplicates: [] };
  if (value === null) throw badRequest("Invalid JSON Patch");
  if (typeof value !== "object" || Array.isArray(value)) {
    const where = type === "strategic" ? "" : "error decoding patch: ";
    throw badRequest(`${where}json: cannot unmarshal ${goType(value)} into Go value of type map[string]interface {}`);
  }
  return { patch: { type, value }, duplicates };
}

export function patchTypeOf(header = "", cbor = false): Patch["type"] | "apply" {
  // As in Kubernetes: parameters are ignored, and the comparison is case-sensitive.
  const type = header.split(";", 1)[0]?.trim() ?? "";
  if (Object.hasOwn(PATCH_TYPES, type)) return PATCH_TYPES[type as keyof typeof PATCH_TYPES];
  if (type === APPLY_TYPE || (cbor && type === APPLY_CBOR_TYPE)) return "apply";
  throw new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", { details: {} });
}

function jsonPatchOperations(value: unknown): readonly Operation[] {
  const unexpectedType = (found: unknown, wanted: string): never => {
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goType(found)} into Go value of type ${wanted}`);
  };
  if (value === null) return [];
  if (!Array.isArray(value)) return unexpectedType(value, "[]handlers.jsonPatchOp");
  for (const item of value) {
    if (typeof item !== "object" || item === null || Array.isArray(item)) unexpectedType(item, "handlers.jsonPatchOp");
    const { op, path, from = "" } = item as { readonly [name: string]: unknown };
    if (typeof op !== "string" || typeof path !== "string" || typeof from !== "string") {
      const message = "the server rejected our request due to an error in our request";
      throw new StatusError(422, "Invalid", message, { details: {} });
    }
  }
  return value as readonly Operation[];
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** Decodes a patched JSON value. Throws a 422 with the value that `show` returns. */
export function decodePatched<T extends ApiObject>(
  { patch, duplicates }: PatchBody,
  value: unknown,
  show: (why: string) => DecodeFailure,
  expected: ExpectedBody,
  validation: FieldValidation,
  warnings: string[],
): T {
  try {
    // A strategic merge patch may contain any kind.
    if (patch.type !== "strategic") checkPatchedType(value, expected);
    const findings: string[] = [];
    const lenient = validation === "Strict" ? "Warn" : validation;
    const object = decodeObject<T>({ value, duplicates }, expected, lenient, findings);
    if (findings.length === 0) return object;
    // Unknown fields are reported in the order of Kubernetes' encoding of the patched object.
    const written = patch.type === "strategic" ? canonicalJson(value) : show("").text;
    return decodeObject<T>({ value: JSON.parse(written), duplicates }, expected, validation, warnings);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { text, detail } = show(error.message.replace(/^.* cannot be handled as a \w+: /, ""));
    const shown = renderFieldError(invalidField("patch", text, detail));
    throw new StatusError(422, "Invalid", ` "" is invalid: patch: ${shown}`, {
      details: { causes: [{ reason: "FieldValueInvalid", message: shown, field: "patch" }] },
    });
  }
}
