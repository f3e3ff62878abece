/** Rules for embedded resources (`x-kubernetes-embedded-resource`): type and metadata. */
import { membersOf } from "../../../schema/members.ts";
import type { Schema } from "../../../schema/schema.ts";
import {
  type FieldError,
  invalidField,
  requiredField,
  unstructured,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { dns1035Label, pathSegment } from "../../meta/validation/names.ts";
import { validateObjectMeta } from "../../meta/validation/object-meta.ts";
import { parseApiVersion } from "../../scheme.ts";

/** Skips the root, which other rules validate. */
export function validateEmbedded(schema: Schema, value: unknown, field = "", root = true): readonly FieldError[] {
  if (!hasEmbeddedResources(schema)) return [];
  switch (schema.type) {
    case "object": {
      if (!isPlainObject(value)) return [];
      const own = schema.embeddedResource === true && !root ? validateResource(value, field) : [];
      const members = membersOf(schema).filter(({ name }) => Object.hasOwn(value, name));
      return [
        ...own,
        ...validateEach(members, (member) =>
          validateEmbedded(member.schema, value[member.name], child(field, member.name), false),
        ),
      ];
    }
    case "map":
      if (!isPlainObject(value)) return [];
      return validateEach(Object.keys(value), (name) =>
        validateEmbedded(schema.values, value[name], key(field, name), false),
      );
    case "list":
      if (!Array.isArray(value)) return [];
      return validateEach(value, (item, i) => validateEmbedded(schema.items, item, index(field, i), false));
    default:
      return [];
  }
}

function validateResource(value: Readonly<Record<string, unknown>>, field: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["apiVersion", "kind"]) {
    if (!Object.hasOwn(value, name)) errors.push(requiredField(child(field, name), "must not be empty"));
  }
  const { apiVersion, kind, metadata } = value;
  if (apiVersion !== undefined) errors.push(...validateApiVersion(apiVersion, child(field, "apiVersion")));
  if (kind !== undefined) errors.push(...validateKind(kind, child(field, "kind")));
  if (isPlainObject(metadata)) {
    const meta = metadata as ObjectMeta;
    // The name may be missing, because the embedded resource is not stored by itself.
    const named = { ...meta, name: meta.name || "fakename" };
    const rules = { namespaced: (meta.namespace ?? "") !== "", nameFormat: pathSegment, allowsAnyFinalizer: true };
    errors.push(...validateObjectMeta(named, rules).map((error) => ({ ...error, field: child(field, error.field) })));
  }
  return errors;
}

function validateApiVersion(value: unknown, field: string): readonly FieldError[] {
  if (typeof value !== "string") return [invalidField(field, unstructured(value), "must be a string")];
  if (value === "") return [invalidField(field, value, "must not be empty")];
  if (parseApiVersion(value) !== undefined) return [];
  return [invalidField(field, value, `unexpected GroupVersion string: ${value}`)];
}

function validateKind(value: unknown, field: string): readonly FieldError[] {
  if (typeof value !== "string") return [invalidField(field, unstructured(value), "must be a string")];
  if (value === "") return [invalidField(field, value, "must not be empty")];
  const problems = dns1035Label(value.toLowerCase());
  if (problems.length === 0) return [];
  return [invalidField(field, value, `may have mixed case, but should otherwise match: ${problems.join(",")}`)];
}

const holding = new WeakMap<Schema, boolean>();

function hasEmbeddedResources(schema: Schema): boolean {
  let holds = holding.get(schema);
  if (holds === undefined) {
    holds = schema.unstructured === true && findEmbeddedResources(schema);
    holding.set(schema, holds);
  }
  return holds;
}

function findEmbeddedResources(schema: Schema): boolean {
  switch (schema.type) {
    case "object":
      return (
        schema.embeddedResource === true || membersOf(schema).some((member) => hasEmbeddedResources(member.schema))
      );
    case "map":
      return hasEmbeddedResources(schema.values);
    case "list":
      return hasEmbeddedResources(schema.items);
    default:
      return false;
  }
}
