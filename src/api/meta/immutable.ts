import { deepEqual } from "../../schema/equal.ts";
import { type FieldError, invalidField } from "../../schema/field-error.ts";

/** A member that no update may change. */
export function validateImmutableField(next: unknown, previous: unknown, field: string): readonly FieldError[] {
  return deepEqual(next, previous) ? [] : [invalidField(field, next, "field is immutable")];
}
