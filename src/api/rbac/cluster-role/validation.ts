import { errorsMax, type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { validatePolicyRules } from "../policy-rule-validation.ts";
import type { ClusterRole } from "./schema.ts";

const SELECTORS = "aggregationRule.clusterRoleSelectors";

export function validateClusterRole(
  { rules = [], aggregationRule }: ClusterRole,
  previous?: ClusterRole,
): readonly FieldError[] {
  const errors = [...validatePolicyRules(rules, false)];
  if (aggregationRule === undefined) return errors;
  const { clusterRoleSelectors: selectors = [] } = aggregationRule;
  if (selectors.length === 0) {
    const detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    errors.push(requiredField(SELECTORS, detail));
  }
  // Accepts invalid label values that the stored role has already.
  const before = previous?.aggregationRule?.clusterRoleSelectors ?? [];
  const allowBadValues = before.some((selector) => validateLabelSelector(selector, "").length > 0);
  for (const [i, selector] of selectors.entries()) {
    if (errors.length >= errorsMax) break;
    const at = index(SELECTORS, i);
    errors.push(...validateLabelSelector(selector, at, { allowInvalidValues: allowBadValues }));
    if (validateLabelSelector(selector, at).length > 0) {
      errors.push(invalidField(at, undefined, "invalid label selector."));
    }
  }
  return errors;
}
