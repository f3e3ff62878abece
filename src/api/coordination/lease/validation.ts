import { type FieldError, forbiddenField, invalidField } from "../../../schema/validation/field-error.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { validateElectionStrategy } from "../lease-candidate/validation.ts";
import type { Lease } from "./schema.ts";

export function validateLease({ spec = {} }: Lease): readonly FieldError[] {
  const { leaseDurationSeconds, leaseTransitions, strategy, preferredHolder = "" } = spec;
  const brief = leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0;
  return [
    ...(brief ? [invalidField("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0")] : []),
    ...validateNonNegative(leaseTransitions, "spec.leaseTransitions"),
    ...(strategy === undefined ? [] : validateElectionStrategy(strategy, "spec.strategy.strategy")),
    ...(preferredHolder !== "" && !strategy
      ? [forbiddenField("spec.preferredHolder", "may only be specified if `strategy` is defined")]
      : []),
  ];
}
