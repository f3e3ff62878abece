import { deepEqual } from "../../schema/equal.ts";
import { type FieldError, invalidField } from "../../schema/field-error.ts";
import type { Schema } from "../../schema/schema.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";

/** A member that no update may change. With its schema, values that mean the same are the same. */
export function validateImmutableField(
  next: unknown,
  previous: unknown,
  field: string,
  schema?: Schema,
): readonly FieldError[] {
  const same = schema === undefined ? deepEqual(next, previous) : semanticEqual(schema, next, previous);
  return same ? [] : [invalidField(field, next, "field is immutable")];
}
