import type { Type } from "../../../cel/values/types.ts";
import {
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
  validateEachInSteps,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { createAdmissionEnvironment, createMutationTypes, validateExpression } from "../expressions.ts";
import {
  validateConstraints,
  validateFailurePolicy,
  validateParamKind,
  validateParamRef,
  validatePolicyName,
} from "../policy-validation.ts";
import { PolicyVariables } from "../policy-variables.ts";
import { validateChoice, validateMatchConditions, validateMatchResources } from "../rules-validation.ts";
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation } from "./schema.ts";

/** A deleted object cannot be mutated. */
const OPERATIONS = ["*", "CONNECT", "CREATE", "UPDATE"];
const REINVOCATION_POLICIES = ["IfNeeded", "Never"];
const PATCH_TYPES = ["ApplyConfiguration", "JSONPatch"];

export function* validateMutatingPolicy({ spec = {} }: MutatingAdmissionPolicy): Steps<readonly FieldError[]> {
  const { paramKind, mutations = [], reinvocationPolicy = "" } = spec;
  const params = paramKind !== undefined;
  const variables = new PolicyVariables({ params }, true);
  const variableErrors = yield* variables.validate(spec.variables ?? [], "spec.variables");
  const { matchConditions = [] } = spec;
  const environment = createAdmissionEnvironment({ params });
  const conditionErrors = yield* validateMatchConditions(matchConditions, environment, "spec.matchConditions");
  const mutationErrors = yield* validateEachInSteps(mutations, (one, i) =>
    validateMutation(one, variables, index("spec.mutations", i)),
  );
  return [
    ...validateFailurePolicy(spec.failurePolicy, "spec.failurePolicy"),
    ...validateParamKind(paramKind, "spec.paramKind"),
    ...validateConstraints(spec.matchConstraints, "spec.matchConstraints"),
    ...validateOperations(spec.matchConstraints, "spec.matchConstraints.resourceRules.operations"),
    ...conditionErrors,
    ...variableErrors,
    ...(mutations.length === 0 ? [requiredField("spec.mutations", "mutations must contain at least one item")] : []),
    ...mutationErrors,
    ...(reinvocationPolicy === ""
      ? [requiredField("spec.reinvocationPolicy")]
      : validateChoice(reinvocationPolicy, REINVOCATION_POLICIES, "spec.reinvocationPolicy")),
  ];
}

type Constraints = NonNullable<MutatingAdmissionPolicy["spec"]>["matchConstraints"];

function validateOperations(constraints: Constraints, path: string): readonly FieldError[] {
  const operations = (constraints?.resourceRules ?? []).flatMap((rule) => rule.operations ?? []);
  return validateEach(operations, (operation) =>
    OPERATIONS.includes(operation) ? [] : [notSupported(path, operation, OPERATIONS)],
  );
}

function validateMutation(mutation: Mutation, variables: PolicyVariables, path: string): readonly FieldError[] {
  const { jsonPatch, applyConfiguration } = mutation;
  const patchType: string = mutation.patchType;
  const at = child(path, "patchType");
  if (patchType === "") return [requiredField(at)];
  const types = createMutationTypes();
  const validate = (expression: string | undefined, result: Type, member: string): readonly FieldError[] => {
    const environment = variables.createEnvironment({ objectTypes: types.objectTypes });
    return validateExpression(expression ?? "", environment, [result], `${child(path, member)}.expression`);
  };
  const members = { jsonPatch, applyConfiguration };
  const other = (name: keyof typeof members): readonly FieldError[] => {
    if (members[name] === undefined) return [];
    return [invalidField(child(path, name), `{${name}}`, `must not be specified when patchType is ${patchType}`)];
  };
  const missing = (name: string): FieldError =>
    requiredField(child(path, name), `must be specified when patchType is ${patchType}`);
  switch (patchType) {
    case "JSONPatch":
      return [
        ...(jsonPatch === undefined
          ? [missing("jsonPatch")]
          : validate(jsonPatch.expression, types.jsonPatch, "jsonPatch")),
        ...other("applyConfiguration"),
      ];
    case "ApplyConfiguration":
      return [
        ...(applyConfiguration === undefined
          ? [missing("applyConfiguration")]
          : validate(applyConfiguration.expression, types.applyConfiguration, "applyConfiguration")),
        ...other("jsonPatch"),
      ];
    default:
      return [notSupported(at, patchType, PATCH_TYPES)];
  }
}

export function validateMutatingPolicyBinding({ spec = {} }: MutatingAdmissionPolicyBinding): readonly FieldError[] {
  return [
    ...validatePolicyName(spec.policyName ?? "", "spec.policyName"),
    ...validateParamRef(spec.paramRef, "spec.paramRef"),
    ...validateMatchResources(spec.matchResources, "spec.matchResources"),
    ...validateOperations(spec.matchResources, "spec.matchResources.resourceRules.operations"),
  ];
}
