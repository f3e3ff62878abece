import { duplicateField, type FieldError, requiredField, validateEach } from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";

/** Rules for the conditions of a status: a type, and no duplicates. */
export function validateConditions(
  conditions: readonly { readonly type?: string | undefined }[],
): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(conditions, ({ type = "" }, i) => {
    const at = child(index("status.conditions", i), "type");
    const repeated = seen.has(type);
    seen.add(type);
    return [
      ...(repeated ? [duplicateField(at, type)] : []),
      ...(type === "" ? [requiredField(at, "must not be empty")] : []),
    ];
  });
}
