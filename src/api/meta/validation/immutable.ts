import type { Schema } from "../../../schema/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, invalidField, unstructured } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { type LabelSelector, labelSelector } from "../label-selector.ts";

/** Rejects a change of the field. With a schema, values of equal meaning are equal. */
export function validateImmutableField(
  next: unknown,
  previous: unknown,
  field: string,
  schema?: Schema,
): readonly FieldError[] {
  const same = schema === undefined ? deepEqual(next, previous) : semanticEqual(schema, next, previous);
  if (same) return [];
  const isStruct = schema !== undefined && typeof next === "object" && next !== null;
  return [invalidField(field, isStruct ? goStruct(schema, next) : unstructured(next), "field is immutable")];
}

/** Rejects a change of a controller's selector; the message has the selector as Go prints it. */
export function validateImmutableSelector(
  next: LabelSelector | undefined,
  previous: LabelSelector | undefined,
): readonly FieldError[] {
  if (deepEqual(next, previous)) return [];
  return [
    invalidField("spec.selector", next === undefined ? "null" : goStruct(labelSelector, next), "field is immutable"),
  ];
}
