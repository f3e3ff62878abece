/** Finds duplicate items in set and map lists of custom resources. */
import { canonicalJson } from "../json/canonical-json.ts";
import { membersOf } from "../members.ts";
import type { ListSchema, Schema } from "../schema.ts";
import { child, index, key } from "../value/field-path.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { duplicateField, errorsMax, type FieldError, unstructured } from "./field-error.ts";

/** One error for each item that equals an earlier one, up to `errorsMax`. */
export function findDuplicates(schema: Schema, value: unknown, field: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  collectDuplicates(schema, value, field, errors);
  return errors;
}

function collectDuplicates(schema: Schema, value: unknown, field: string, errors: FieldError[]): void {
  if (!canRepeat(schema) || errors.length >= errorsMax) return;
  switch (schema.type) {
    case "object":
      if (!isPlainObject(value)) return;
      for (const { name, schema: target } of membersOf(schema)) {
        if (Object.hasOwn(value, name)) collectDuplicates(target, value[name], child(field, name), errors);
      }
      return;
    case "map":
      if (!isPlainObject(value)) return;
      for (const name of Object.keys(value)) collectDuplicates(schema.values, value[name], key(field, name), errors);
      return;
    case "list":
      if (!Array.isArray(value)) return;
      collectRepeatedItems(schema, value, field, errors);
      for (const [position, item] of value.entries()) {
        collectDuplicates(schema.items, item, index(field, position), errors);
      }
  }
}

function collectRepeatedItems(
  schema: ListSchema,
  items: readonly unknown[],
  field: string,
  errors: FieldError[],
): void {
  if (schema.listType === "atomic") return;
  const seen = new Set<string>();
  for (const [position, item] of items.entries()) {
    const identity = schema.listType === "set" ? item : keysOf(schema, item);
    const text = canonicalJson(identity);
    if (seen.has(text)) errors.push(duplicateField(index(field, position), unstructured(identity)));
    if (errors.length >= errorsMax) return;
    seen.add(text);
  }
}

function keysOf({ mapKeys = [] }: ListSchema, item: unknown): Readonly<Record<string, unknown>> {
  const keys: Record<string, unknown> = {};
  if (!isPlainObject(item)) return keys;
  for (const name of mapKeys) if (Object.hasOwn(item, name)) setMember(keys, name, item[name]);
  return keys;
}

const canRepeatCache = new WeakMap<Schema, boolean>();

function canRepeat(schema: Schema): boolean {
  let can = canRepeatCache.get(schema);
  if (can === undefined) {
    can = schema.unstructured === true && containsUniqueList(schema);
    canRepeatCache.set(schema, can);
  }
  return can;
}

function containsUniqueList(schema: Schema): boolean {
  switch (schema.type) {
    case "object":
      return membersOf(schema).some((member) => canRepeat(member.schema));
    case "map":
      return canRepeat(schema.values);
    case "list":
      return schema.listType !== "atomic" || canRepeat(schema.items);
    default:
      return false;
  }
}
