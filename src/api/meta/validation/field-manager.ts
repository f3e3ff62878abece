/** Names under which clients manage fields, and the entries of `managedFields` that carry them. */
import { type FieldError, invalidField, tooLong } from "../../../schema/validation/field-error.ts";
import type { ManagedFieldsEntry } from "../object-meta.ts";

export const FIELD_MANAGER_MAX_BYTES = 128;
const SUBRESOURCE_MAX_BYTES = 256;

/** What Go calls printable: no control characters, and of blanks the plain one alone. */
export function isPrintable(character: string): boolean {
  return character === " " || !/[\p{C}\p{Z}]/u.test(character);
}

export function validateFieldManager(manager: string, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > FIELD_MANAGER_MAX_BYTES) errors.push(tooLong(path, FIELD_MANAGER_MAX_BYTES));
  const characters = [...manager];
  const place = characters.findIndex((character) => !isPrintable(character));
  if (place >= 0) {
    const code = characters[place]!.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    errors.push(invalidField(path, manager, `invalid character U+${code} (at position ${place})`));
  }
  return errors;
}

/** Entries that cannot be read at all have been dropped before. */
export function validateManagedFields(entries: readonly ManagedFieldsEntry[] = []): readonly FieldError[] {
  return entries.flatMap(({ manager = "", subresource = "" }, place) => {
    const path = `metadata.managedFields[${place}]`;
    const isLong = Buffer.byteLength(subresource) > SUBRESOURCE_MAX_BYTES;
    return [
      ...validateFieldManager(manager, `${path}.manager`),
      ...(isLong ? [tooLong(`${path}.subresource`, SUBRESOURCE_MAX_BYTES)] : []),
    ];
  });
}
