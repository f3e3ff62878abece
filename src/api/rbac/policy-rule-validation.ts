import { type FieldError, invalidField, requiredField, validateEach } from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";
import type { PolicyRule } from "./policy-rule.ts";

/** A policy rule has either resources or non-resource URLs; the rules of a Role have resources only. */
export function validatePolicyRules(rules: readonly PolicyRule[], namespaced: boolean): readonly FieldError[] {
  return validateEach(rules, (rule, i) => validatePolicyRule(rule, namespaced, index("rules", i)));
}

function validatePolicyRule(rule: PolicyRule, namespaced: boolean, path: string): readonly FieldError[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  const urls = child(path, "nonResourceURLs");
  const errors: FieldError[] = [];
  if (verbs.length === 0) errors.push(requiredField(child(path, "verbs"), "verbs must contain at least one value"));
  if (nonResourceURLs.length > 0) {
    if (namespaced) {
      errors.push(invalidField(urls, nonResourceURLs, "namespaced rules cannot apply to non-resource URLs"));
    }
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      const detail = "rules cannot apply to both regular resources and non-resource URLs";
      errors.push(invalidField(urls, nonResourceURLs, detail));
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    errors.push(requiredField(child(path, "apiGroups"), "resource rules must supply at least one api group"));
  }
  if (resources.length === 0) {
    errors.push(requiredField(child(path, "resources"), "resource rules must supply at least one resource"));
  }
  return errors;
}
