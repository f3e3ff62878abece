/** Rules for names of field managers and for entries of `managedFields`. */
import {
  errorsMax,
  type FieldError,
  invalidField,
  tooLong,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import type { ManagedFieldsEntry } from "../object-meta.ts";

export const FIELD_MANAGER_MAX_BYTES = 128;
const SUBRESOURCE_MAX_BYTES = 256;

/** Printable as Go defines it: no control characters, and of all spaces only U+0020. */
export function isPrintable(character: string): boolean {
  return character === " " || !/[\p{C}\p{Z}]/u.test(character);
}

/** Positions are in bytes. */
export function validateFieldManager(manager: string, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > FIELD_MANAGER_MAX_BYTES) errors.push(tooLong(path, FIELD_MANAGER_MAX_BYTES));
  let position = 0;
  for (const character of manager) {
    if (errors.length >= errorsMax) break;
    if (!isPrintable(character)) {
      const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
      errors.push(invalidField(path, manager, `invalid character U+${code} (at position ${position})`));
    }
    position += Buffer.byteLength(character);
  }
  return errors;
}

/** Malformed entries are dropped before validation. */
export function validateManagedFields(entries: readonly ManagedFieldsEntry[] = []): readonly FieldError[] {
  return validateEach(entries, ({ manager = "", subresource = "" }, i) => {
    const path = `metadata.managedFields[${i}]`;
    const isLong = Buffer.byteLength(subresource) > SUBRESOURCE_MAX_BYTES;
    return [
      ...validateFieldManager(manager, `${path}.manager`),
      ...(isLong ? [tooLong(`${path}.subresource`, SUBRESOURCE_MAX_BYTES)] : []),
    ];
  });
}
