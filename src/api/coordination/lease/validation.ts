import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import type { Lease } from "./schema.ts";

export function validateLease({ spec = {} }: Lease): readonly FieldError[] {
  const { leaseDurationSeconds, leaseTransitions } = spec;
  const brief = leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0;
  return [
    ...(brief ? [invalidField("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0")] : []),
    ...validateNonNegative(leaseTransitions, "spec.leaseTransitions"),
  ];
}
