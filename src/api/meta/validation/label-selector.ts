/** Rules for `LabelSelector`: label keys and values, and the values that each operator requires. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../label-selector.ts";
import { labelValue, qualifiedName } from "./names.ts";
import { validateLabels } from "./object-meta.ts";

export interface LabelSelectorValidationOptions {
  /** Accepts values that are not label values, for objects stored with one. */
  readonly allowInvalidValues?: boolean;
  /** Leaves other operators to the authorizers. */
  readonly allowUnknownOperators?: boolean;
}

/** Accepts an absent selector. */
export function validateLabelSelector(
  selector: LabelSelector | undefined,
  path: string,
  rules: LabelSelectorValidationOptions = {},
): readonly FieldError[] {
  const expressions = selector?.matchExpressions ?? [];
  return [
    ...validateLabels(selector?.matchLabels, child(path, "matchLabels")),
    ...validateEach(expressions, (expression, i) =>
      validateLabelRequirement(expression, index(child(path, "matchExpressions"), i), rules),
    ),
  ];
}

export function validateLabelRequirement(
  { key, operator, values = [] }: LabelSelectorRequirement,
  path: string,
  rules: LabelSelectorValidationOptions = {},
): readonly FieldError[] {
  const at = child(path, "values");
  return [
    ...(rules.allowUnknownOperators === true && !OPERATORS.has(operator)
      ? []
      : validateOperator(operator, values, path)),
    ...qualifiedName(key).map((problem) => invalidField(child(path, "key"), key, problem)),
    ...validateEach(rules.allowInvalidValues === true ? [] : values, (value, i) =>
      labelValue(value).map((problem) => invalidField(index(at, i), value, problem)),
    ),
  ];
}

const OPERATORS: ReadonlySet<string> = new Set(["In", "NotIn", "Exists", "DoesNotExist"]);

/** The operators of label selectors. */
export function validateOperator(operator: string, values: readonly string[], path: string): readonly FieldError[] {
  const at = child(path, "values");
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length > 0 ? [] : [requiredField(at, "must be specified when `operator` is 'In' or 'NotIn'")];
    case "Exists":
    case "DoesNotExist":
      return values.length === 0
        ? []
        : [forbiddenField(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    default:
      return [invalidField(child(path, "operator"), operator, "not a valid selector operator")];
  }
}
