import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import { validateMatchResources } from "../rules-validation.ts";
import type { ParamRef, ValidatingAdmissionPolicyBinding } from "../validating-admission-policy/schema.ts";

const ACTIONS = ["Audit", "Deny", "Warn"];

const NOT_FOUND_ACTIONS = ["Deny", "Allow"];

export function validateValidatingAdmissionPolicyBinding({
  spec = {},
}: ValidatingAdmissionPolicyBinding): readonly FieldError[] {
  const { policyName = "", paramRef, matchResources, validationActions = [] } = spec;
  return [
    ...(policyName === ""
      ? [requiredField("spec.policyName")]
      : dns1123Subdomain(policyName).map((problem) => invalidField("spec.policyName", policyName, problem))),
    ...(paramRef === undefined ? [] : validateParamRef(paramRef, "spec.paramRef")),
    ...validateMatchResources(matchResources, "spec.matchResources"),
    ...validateActions(validationActions, "spec.validationActions"),
  ];
}

function validateParamRef(ref: ParamRef, path: string): readonly FieldError[] {
  const { name = "", selector, parameterNotFoundAction } = ref;
  const both = name !== "" && selector !== undefined;
  const neither = name === "" && selector === undefined;
  const at = `${path}.parameterNotFoundAction`;
  const exclusive = "name and selector are mutually exclusive";
  return [
    ...(name === "" ? [] : pathSegment(name).map((problem) => invalidField(`${path}.name`, name, problem))),
    ...(both ? [forbiddenField(`${path}.name`, exclusive)] : []),
    ...(neither ? [requiredField(path, "one of name or selector must be specified")] : []),
    ...validateLabelSelector(selector, `${path}.selector`),
    ...(both ? [forbiddenField(`${path}.selector`, exclusive)] : []),
    ...(parameterNotFoundAction === undefined || parameterNotFoundAction === ""
      ? [requiredField(at)]
      : NOT_FOUND_ACTIONS.includes(parameterNotFoundAction)
        ? []
        : [notSupported(at, parameterNotFoundAction, NOT_FOUND_ACTIONS)]),
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
  return [...errors, invalidField(path, actions, detail)];
}
