/** Applies what the expression of a mutation returned to the object: an apply configuration or a JSON patch. */
import { applyJsonPatch, JsonPatchError, type JsonPatchOperation, JsonPatchTestError } from "../../api/json-patch.ts";
import type { ApiObject } from "../../api/kind.ts";
import { formatApiVersion, type Scheme } from "../../api/scheme.ts";
import { NoJsonError, toJson } from "../../cel/adapter/to-json.ts";
import { ObjectValue } from "../../cel/values/object-value.ts";
import { List, MapValue, type Value } from "../../cel/values/value.ts";
import { fieldElement, formatElement } from "../../schema/apply/fieldpath/path-element.ts";
import { merge } from "../../schema/apply/merge.ts";
import { type Shape, shapeOf } from "../../schema/apply/shape.ts";
import { validateTyped } from "../../schema/apply/typed-validation.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { type EquivalentResource, encodeJson } from "../matching/equivalent-resource.ts";
import { checkPatchedKind, describeUnknownFields, internalError } from "../matching/patched-kind.ts";

/** An apply configuration cannot set null, which no type accepts. */
const NULL = Symbol("NULL_VALUE");
const TYPED = "failed to convert patch object to typed object";

/** The mutation cannot be applied; the failure policy decides. */
export class MutationError extends Error {}

/**
 * Returns the mutated object with defaults. Throws a `MutationError`, or a `StatusError` if the result is not an object
 * of the kind.
 */
export function applyConfiguration(resource: EquivalentResource, object: ApiObject, configuration: Value): ApiObject {
  if (!(configuration instanceof ObjectValue)) throw new MutationError("invalid return type");
  const mismatches = [...typeMismatches(configuration, [configuration.typeName])];
  if (mismatches.length > 0) throw new MutationError(`type mismatch: ${mismatches.join("\n")}`);
  const { group, version, kind } = resource.objects;
  const patch = { ...jsonOf(configuration, NULL), apiVersion: formatApiVersion(group, version), kind };
  const shape = shapeOf(resource.schema);
  // Kubernetes looks for the type in the OpenAPI document of its own version, which has none of `autoscaling/v1.Scale`.
  if (resource.kind === undefined && group !== resource.group) {
    const type = `${formatGroupVersion(group, version)}, Kind=${kind}`;
    throw new MutationError(`error applying patch: ${TYPED}: no corresponding type for ${type}`);
  }
  check(TYPED, () => validateTyped(shape, patch));
  const atomics = [...findAtomics(shape, patch, "")];
  if (atomics.length > 0) {
    const what = `may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`;
    throw new MutationError(`error applying patch: invalid ApplyConfiguration: ${what}`);
  }
  const live = encodeJson(resource, object);
  const merged = check("failed to merge patch", () => merge(shape, live, patch));
  return decodeMutated(resource, merged, "drop");
}

/** As `applyConfiguration`. Undefined if an operation `test` fails: the patch has no effect then. */
export function applyPatch(
  resource: EquivalentResource,
  object: ApiObject,
  patch: Value,
  scheme: Scheme,
): ApiObject | undefined {
  if (!(patch instanceof List))
    throw new MutationError("type mismatch: JSONPatchType.expression should evaluate to array");
  const operations = [...patch].map(operationOf);
  let patched: unknown;
  try {
    patched = applyJsonPatch(encodeJson(resource, object), operations);
  } catch (error) {
    if (error instanceof JsonPatchTestError) return undefined;
    if (error instanceof JsonPatchError) throw new MutationError(`JSON Patch: ${error.message}`);
    throw error;
  }
  checkPatchedKind(resource, patched, scheme, "report");
  // Kubernetes has no Go types of custom resources, whose unknown fields are only pruned.
  return decodeMutated(resource, patched, resource.kind?.custom === true ? "prune" : "report");
}

function operationOf(operation: Value): JsonPatchOperation {
  if (!(operation instanceof ObjectValue)) {
    throw new MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
  }
  const text = (name: string): string => {
    const value = operation.fields.get(name) ?? "";
    if (typeof value === "string") return value;
    throw new MutationError(`unexpected type for JSONPatchType '${name}' field`);
  };
  const from = text("from");
  const value = operation.fields.get("value");
  if (value instanceof ObjectValue) {
    const mismatches = [...typeMismatches(value, [value.typeName])];
    if (mismatches.length > 0) throw new MutationError(`type mismatch: ${mismatches.join("\n")}`);
  }
  return {
    op: text("op"),
    path: text("path"),
    ...(from === "" ? {} : { from }),
    ...(value === undefined ? {} : { value: jsonOf(value) }),
  };
}

function jsonOf(value: ObjectValue, nullValue?: unknown): Readonly<Record<string, unknown>>;
function jsonOf(value: Value): unknown;
function jsonOf(value: Value, nullValue: unknown = null): unknown {
  try {
    return toJson(value, nullValue);
  } catch (error) {
    if (!(error instanceof NoJsonError)) throw error;
    throw new MutationError(
      `JSONPath valueExpression evaluated to a type that could not marshal to JSON: ${error.message}`,
    );
  }
}

function check<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new MutationError(`error applying patch: ${what}: ${error.message}`);
  }
}

/** The type of an object must be named after its path: the field `spec` of an `Object` is an `Object.spec`. */
function* typeMismatches(value: Value, path: readonly string[]): Iterable<string> {
  if (value instanceof ObjectValue) {
    const expected = path.join(".");
    if (value.typeName !== expected) {
      const names = `${goQuote(value.typeName)}, expected ${goQuote(expected)}`;
      yield `unexpected type name ${names}, which matches field name path from root Object type`;
    }
    for (const [name, member] of value.fields) yield* typeMismatches(member, [...path, name]);
  } else if (value instanceof List) {
    for (const item of value) yield* typeMismatches(item, path);
  } else if (value instanceof MapValue) {
    for (const key of value.keys()) yield* typeMismatches(value.get(key) ?? null, path);
  }
}

/**
 * The paths of atomic values. Setting a part of one would remove the rest of it, so that they cannot be set at
 * all. Values of maps are not examined.
 */
function* findAtomics(shape: Shape, value: unknown, path: string): Iterable<string> {
  const content = shape.kind === "atomic" ? shape.content : shape;
  if (shape.kind === "atomic" && typeof value === "object" && value !== null) yield path;
  if (content.kind === "members" && isPlainObject(value)) {
    for (const name of Object.keys(value).sort()) {
      const member = content.declared.get(name);
      if (member !== undefined) yield* findAtomics(member, value[name], `${path}${formatElement(fieldElement(name))}`);
    }
  } else if (content.kind === "items" && Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* findAtomics(content.items, item, `${path}[${index}]`);
  }
}

function decodeMutated(
  resource: EquivalentResource,
  json: unknown,
  unknownFields: "drop" | "prune" | "report",
): ApiObject {
  const { schema, kind } = resource;
  const { value, errors, unknown } = decode(schema, json, {
    unknownFields: unknownFields === "report" ? "report" : "drop",
  });
  const [error] = errors;
  if (error !== undefined) {
    if (unknownFields !== "drop") throw internalError(error.message);
    const { group, version, kind: name } = resource.objects;
    const gvk = `${formatGroupVersion(group, version)}, Kind=${name}`;
    throw new MutationError(`unable to convert unstructured object to ${gvk}: ${describeConversion(error.message)}`);
  }
  if (unknown.length > 0) throw internalError(describeUnknownFields(unknown));
  const { kind: _, apiVersion: __, ...object } = value as ApiObject;
  const defaulted = applyDefaults(schema, object as ApiObject);
  return kind?.strategy.setDefaults?.(defaulted) ?? defaulted;
}

/** Kubernetes' converter names the types only. */
function describeConversion(message: string): string {
  const [, type] =
    /^json: cannot unmarshal number [-+.\deE]+ into Go struct field .* of type (u?int\d*)$/.exec(message) ?? [];
  return type === undefined ? message : `cannot convert float64 to ${type}`;
}

/** `/v1` for the core group. */
function formatGroupVersion(group: string, version: string): string {
  return `${group}/${version}`;
}
