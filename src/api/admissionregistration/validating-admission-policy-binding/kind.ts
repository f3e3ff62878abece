import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { index } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { validateMatchResources } from "../rules-validation.ts";
import { setMatchDefaults } from "../validating-admission-policy/kind.ts";
import {
  type ParamRef,
  type ValidatingAdmissionPolicyBinding,
  validatingAdmissionPolicyBinding,
} from "../validating-admission-policy/schema.ts";

const ACTIONS = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS = ["Deny", "Allow"];

function validateValidatingAdmissionPolicyBinding({ spec = {} }: ValidatingAdmissionPolicyBinding): readonly FieldError[] {
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
  const errors = actions.flatMap((action, i) => {
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

const validatingAdmissionPolicyBindingStrategy: Strategy<ValidatingAdmissionPolicyBinding> = {
  setDefaults: (object) => {
    const { matchResources } = object.spec ?? {};
    if (matchResources === undefined) return object;
    return { ...object, spec: { ...object.spec, matchResources: setMatchDefaults(matchResources) } };
  },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateValidatingAdmissionPolicyBinding,
  allowUnconditionalUpdate: false,
};

export const validatingAdmissionPolicyBindingKind: Kind<ValidatingAdmissionPolicyBinding> = {
  group: "admissionregistration.svc.io",
  version: "v1",
  kind: "ValidatingAdmissionPolicyBinding",
  listKind: "ValidatingAdmissionPolicyBindingList",
  plural: "validatingadmissionpolicybindings",
  singular: "validatingadmissionpolicybinding",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "validatingadmissionpolicybindings",
  schema: validatingAdmissionPolicyBinding,
  columns: [
    nameColumn,
    column("PolicyName", (object) => object.spec?.policyName ?? ""),
    column("ParamRef", ({ spec }) => paramRefText(spec?.paramRef)),
    ageColumn,
  ],
  selectableFields: {},
  strategy: validatingAdmissionPolicyBindingStrategy,
};

function paramRefText(ref: ParamRef | undefined): string {
  if (ref === undefined) return "<unset>";
  const { namespace = "", name = "*" } = ref;
  return namespace === "" ? name : `${namespace}/${name}`;
}
