/** Rules for `LabelSelector` objects: keys and values are those of labels, operators have the values they need. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { LabelSelector, LabelSelectorRequirement } from "../label-selector.ts";
import { labelValue, qualifiedName } from "./names.ts";
import { validateLabels } from "./object-meta.ts";

export interface LabelSelectorValidationOptions {
  /** Objects that were stored with a value which is no label keep it. */
  readonly allowInvalidValues?: boolean;
}

/** An absent selector is fine. */
export function validateLabelSelector(
  selector: LabelSelector | undefined,
  path: string,
  rules: LabelSelectorValidationOptions = {},
): readonly FieldError[] {
  const expressions = selector?.matchExpressions ?? [];
  return [
    ...validateLabels(selector?.matchLabels, child(path, "matchLabels")),
    ...expressions.flatMap((expression, i) =>
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
    ...validateOperator(operator, values, path),
    ...qualifiedName(key).map((problem) => invalidField(child(path, "key"), key, problem)),
    ...(rules.allowInvalidValues === true ? [] : values).flatMap((value, i) =>
      labelValue(value).map((problem) => invalidField(index(at, i), value, problem)),
    ),
  ];
}

/** The operators that every selector of labels knows. */
function validateOperator(operator: string, values: readonly string[], path: string): readonly FieldError[] {
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
