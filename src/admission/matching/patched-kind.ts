/** Checks apiVersion and kind of an object to which a JSON patch was applied. */
import {
  type GroupVersionKind,
  goTypeOf,
  groupVersionKindOf,
  internalType,
  notRegistered,
  parseTypeMeta,
  schemeFileOf,
} from "../../api/group-version-kind.ts";
import { formatApiVersion, type Scheme, svcGroup } from "../../api/scheme.ts";
import { invalid, StatusError } from "../../api/status.ts";
import { decode } from "../../schema/decode/decode.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { invalidField, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { EquivalentResource } from "./equivalent-resource.ts";

/**
 * Throws a `StatusError` when the object is of another kind or version than the resource. Builtin kinds may lack both
 * members; custom resources must have them. `unknownFields` applies to what is of another kind.
 */
export function checkPatchedKind(
  { objects, kind }: EquivalentResource,
  json: unknown,
  scheme: Scheme,
  unknownFields: "drop" | "report",
): void {
  if (!isPlainObject(json)) return;
  try {
    if (kind?.custom === true) checkCustom(objects, json);
    else checkBuiltin(objects, json, scheme, unknownFields);
  } catch (error) {
    throw error instanceof StatusError ? error : internalError((error as Error).message);
  }
}

function checkCustom(expected: GroupVersionKind, json: Readonly<Record<string, unknown>>): void {
  const { kind, group, version } = parseTypeMeta(json);
  if (kind === "") throw new Error(`Object 'Kind' is missing in '${stringifyExact(json)}'`);
  if (svcGroup(group) !== svcGroup(expected.group) || version !== expected.version) {
    const wanted = goQuote(formatApiVersion(expected.group, expected.version));
    const found = `${group}/${version}, Kind=${kind}`;
    throw new Error(
      `failed to convert object: ${found} is unstructured and is not suitable for converting to ${wanted}`,
    );
  }
  if (kind === expected.kind) return;
  const error = invalidField("kind", kind, `must be ${expected.kind}`);
  const { name } = (json.metadata ?? {}) as { readonly name?: unknown };
  const subject = { group: expected.group, resource: kind, name: typeof name === "string" ? name : "" };
  throw invalid(subject, [error], renderFieldError);
}

function checkBuiltin(
  expected: GroupVersionKind,
  json: Readonly<Record<string, unknown>>,
  scheme: Scheme,
  unknownFields: "drop" | "report",
): void {
  const found = groupVersionKindOf(json, expected);
  const isSameVersion = svcGroup(found.group) === svcGroup(expected.group) && found.version === expected.version;
  if (found.kind === expected.kind && isSameVersion) return;
  const type = goTypeOf(found, scheme);
  if (type === undefined) throw new Error(notRegistered(found, schemeFileOf(expected.group)));
  // The object is decoded as its own kind before the kinds are compared.
  const other = scheme.byKind(found.group, found.version, found.kind)?.schema;
  const { errors, unknown } =
    other === undefined ? { errors: [], unknown: [] } : decode(other, json, { unknownFields });
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  if (unknown.length > 0) throw new Error(describeUnknownFields(unknown));
  const wanted = internalType(expected.group, expected.kind);
  throw new Error(`failed to convert object: converting (${type}) to (${wanted}): unknown conversion`);
}

export function describeUnknownFields(paths: readonly string[]): string {
  return `strict decoding error: ${paths.map((path) => `unknown field ${goQuote(path)}`).join(", ")}`;
}

export function internalError(message: string): StatusError {
  const details = { causes: [{ message }] };
  return new StatusError(500, "InternalError", `Internal error occurred: ${message}`, { details });
}
