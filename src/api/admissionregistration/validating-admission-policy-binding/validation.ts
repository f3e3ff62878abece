import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateParamRef, validatePolicyName } from "../policy-validation.ts";
import { goList, validateMatchResources } from "../rules-validation.ts";
import type { ValidatingAdmissionPolicyBinding } from "../validating-admission-policy/schema.ts";

const ACTIONS = ["Audit", "Deny", "Warn"];

export function validateValidatingAdmissionPolicyBinding({
  spec = {},
}: ValidatingAdmissionPolicyBinding): readonly FieldError[] {
  const { policyName = "", paramRef, matchResources, validationActions = [] } = spec;
  return [
    ...validatePolicyName(policyName, "spec.policyName"),
    ...validateParamRef(paramRef, "spec.paramRef"),
    ...validateMatchResources(matchResources, "spec.matchResources"),
    ...validateActions(validationActions, "spec.validationActions"),
  ];
}

function validateActions(actions: readonly string[], path: string): readonly FieldError[] {
  if (actions.length === 0) return [requiredField(path, "at least one validation action is required")];
  const seen = new Set<string>();
  const errors = validateEach(actions, (action, i) => {
    const twice = seen.has(action);
    seen.add(action);
    return [
      ...(ACTIONS.includes(action) ? [] : [notSupported(index(path, i), action, ACTIONS)]),
      ...(twice ? [duplicateField(index(path, i), action)] : []),
    ];
  });
  if (!seen.has("Deny") || !seen.has("Warn")) return errors;
  const detail =
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and " +
    "headers serves no purpose)";
  return [...errors, invalidField(path, goList("ValidationAction", actions), detail)];
}
