/** Rules for numbers with a minimum. */
import { type FieldError, invalidField, validateEach } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";

/** Accepts an absent number. */
export function validateNonNegative(value: number | undefined, field: string): readonly FieldError[] {
  return value === undefined || value >= 0 ? [] : [invalidField(field, value, "must be greater than or equal to 0")];
}

/** Checks the named fields of `object`, whose path is `path`, in that order. */
export function validateNonNegativeFields<T extends object>(
  object: T,
  path: string,
  names: readonly (keyof T & string)[],
): readonly FieldError[] {
  return validateEach(names, (name) => validateNonNegative(object[name] as number | undefined, child(path, name)));
}

/** Rejects a lower value of a counter such as `status.collisionCount`; an absent one counts as 0. */
export function validateNotDecremented(
  next: number | undefined,
  previous: number | undefined,
  field: string,
): readonly FieldError[] {
  if (previous === undefined || (next !== undefined && next >= previous)) return [];
  return [invalidField(field, next ?? 0, "cannot be decremented")];
}
