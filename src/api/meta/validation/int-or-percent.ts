/** Values that are an integer or a percentage: `3`, `"25%"`. */

import { intOrString } from "../../../schema/define.ts";
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { validateNonNegative } from "./bounds.ts";

export type IntOrPercent = number | string;

const PERCENT = /^[0-9]+%$/;
const PERCENT_MESSAGE =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** Accepts an absent value. */
export function validateIntOrPercent(value: IntOrPercent | undefined, field: string): readonly FieldError[] {
  if (typeof value !== "string") return validateNonNegative(value, field);
  return PERCENT.test(value) ? [] : [invalidField(field, goStruct(intOrString, value), PERCENT_MESSAGE)];
}

export function validateAtMostHundredPercent(value: IntOrPercent | undefined, field: string): readonly FieldError[] {
  const tooMuch = typeof value === "string" && PERCENT.test(value) && Number.parseInt(value, 10) > 100;
  return tooMuch ? [invalidField(field, goStruct(intOrString, value), "must not be greater than 100%")] : [];
}

/** The number of either form; 0 for other text. */
export function intOrPercentValue(value: IntOrPercent | undefined): number {
  if (typeof value !== "string") return value ?? 0;
  return /^[-+]?\d+%?$/.test(value) ? Number.parseInt(value, 10) : 0;
}
