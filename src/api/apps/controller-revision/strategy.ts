import { requiredField } from "../../../schema/validation/field-error.ts";
import type { Strategy } from "../../kind.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { validateImmutableField } from "../../meta/validation/immutable.ts";
import type { ControllerRevision } from "./schema.ts";

export const controllerRevisionStrategy: Strategy<ControllerRevision> = {
  // An update that removes the data gets only the immutability error.
  validate: ({ data, revision }, previous) => [
    ...(previous === undefined && (data ?? undefined) === undefined
      ? [requiredField("data", "data is mandatory")]
      : []),
    ...validateNonNegative(revision, "revision"),
  ],
  validateUpdate: (next, previous) => validateImmutableField(next.data, previous.data, "data"),
};
