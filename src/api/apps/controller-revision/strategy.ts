import { type FieldError, requiredField } from "../../../schema/validation/field-error.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { Strategy } from "../../kind.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import type { ControllerRevision } from "./schema.ts";

function validateData(data: unknown): readonly FieldError[] {
  if ((data ?? undefined) === undefined) return [requiredField("data", "data is mandatory")];
  return isPlainObject(data) ? [] : [requiredField("data", "data must be a valid JSON object")];
}

export const controllerRevisionStrategy: Strategy<ControllerRevision> = {
  // An update that removes the data gets only the immutability error.
  validate: ({ data, revision }, previous) => [
    ...(previous === undefined ? validateData(data) : []),
    ...validateNonNegative(revision, "revision"),
  ],
  validateUpdate: (next, previous) => validateImmutableField(next.data, previous.data, "data"),
};
