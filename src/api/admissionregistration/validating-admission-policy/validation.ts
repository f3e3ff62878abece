import { boolType, nullType, stringType } from "../../../cel/values/types.ts";
import { list } from "../../../schema/define.ts";
import { JsonPathError, parseJsonPath } from "../../../schema/json/json-path.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  validateEach,
  validateEachInSteps,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { qualifiedName } from "../../meta/validation/names.ts";
import { createAdmissionEnvironment, validateExactExpression, validateExpression } from "../expressions.ts";
import { validateConstraints, validateFailurePolicy, validateParamKind } from "../policy-validation.ts";
import { PolicyVariables } from "../policy-variables.ts";
import { validateChoice, validateMatchConditions } from "../rules-validation.ts";
import { type AuditAnnotation, auditAnnotation, type ValidatingAdmissionPolicy, type Validation } from "./schema.ts";

/** Kubernetes documents `Unauthorized` too, and refuses it. */
const REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ANNOTATIONS_MAX = 20;
const VALUE_EXPRESSION_BYTES_MAX = 5 * 1024;
const NOT_SPECIFIED = "expression is not specified";
const NOTHING_TO_DO = "validations or auditAnnotations must contain at least one item";

export function* validatePolicy(object: ValidatingAdmissionPolicy): Steps<readonly FieldError[]> {
  const spec = object.spec ?? {};
  const { paramKind, validations = [], auditAnnotations = [] } = spec;
  const params = paramKind !== undefined;
  const variables = new PolicyVariables({ params }, false);
  const variableErrors = yield* variables.validate(spec.variables ?? [], "spec.variables");
  const { matchConditions = [] } = spec;
  const environment = createAdmissionEnvironment({ params });
  const conditionErrors = yield* validateMatchConditions(matchConditions, environment, "spec.matchConditions");
  const validationErrors = yield* validateEachInSteps(validations, (one, i) =>
    validateValidation(one, variables, index("spec.validations", i)),
  );
  const name = object.metadata?.name ?? "";
  return [
    ...validateFailurePolicy(spec.failurePolicy, "spec.failurePolicy"),
    ...validateParamKind(paramKind, "spec.paramKind"),
    ...validateConstraints(spec.matchConstraints, "spec.matchConstraints"),
    ...conditionErrors,
    ...variableErrors,
    ...(validations.length === 0 && auditAnnotations.length === 0
      ? [requiredField("spec.validations", NOTHING_TO_DO), requiredField("spec.auditAnnotations", NOTHING_TO_DO)]
      : []),
    ...validationErrors,
    ...(yield* validateAnnotations(auditAnnotations, name, variables, "spec.auditAnnotations")),
  ];
}

export function validatePolicyStatus({ status }: ValidatingAdmissionPolicy): readonly FieldError[] {
  const path = "status.typeChecking.expressionWarnings";
  return [
    ...validateEach(status?.typeChecking?.expressionWarnings ?? [], ({ warning, fieldRef }, i) => [
      ...(warning === "" ? [requiredField(child(index(path, i), "warning"))] : []),
      ...validateFieldRef(fieldRef.trim(), child(index(path, i), "fieldRef")),
    ]),
    ...validateConditions(status?.conditions, "status.conditions"),
  ];
}

/** The path of an expression in the policy: `spec.validations[0].expression`. */
function validateFieldRef(fieldRef: string, path: string): readonly FieldError[] {
  if (fieldRef === "") return [requiredField(path)];
  try {
    parseJsonPath(fieldRef);
    return [];
  } catch (error) {
    if (!(error instanceof JsonPathError)) throw error;
    return [invalidField(path, fieldRef, `invalid JSONPath: ${error.message}`)];
  }
}

function validateValidation(validation: Validation, variables: PolicyVariables, path: string): readonly FieldError[] {
  const { expression, message = "", messageExpression = "", reason } = validation;
  const blank = messageExpression !== "" && messageExpression.trim() === "";
  return [
    ...validateExactExpression(
      expression,
      variables.createEnvironment(),
      [boolType],
      child(path, "expression"),
      NOT_SPECIFIED,
    ),
    ...(blank
      ? [invalidField(child(path, "messageExpression"), messageExpression, "must be non-empty if specified")]
      : []),
    ...(messageExpression.trim() === ""
      ? []
      : validateExactExpression(
          messageExpression,
          variables.createEnvironment({ authorizer: false }),
          [stringType],
          child(path, "messageExpression"),
        )),
    ...validateMessage(message, child(path, "message")),
    ...validateChoice(reason, REASONS, child(path, "reason")),
  ];
}

function validateMessage(message: string, path: string): readonly FieldError[] {
  const text = message.trim();
  if (message !== "" && text === "") return [invalidField(path, message, "message must be non-empty if specified")];
  return /[\r\n]/.test(text) ? [invalidField(path, message, "message must not contain line breaks")] : [];
}

function* validateAnnotations(
  annotations: readonly AuditAnnotation[],
  policy: string,
  variables: PolicyVariables,
  path: string,
): Steps<readonly FieldError[]> {
  const seen = new Set<string>();
  const many = annotations.length > ANNOTATIONS_MAX;
  return [
    ...(many
      ? [
          invalidField(
            path,
            goStruct(list(auditAnnotation), annotations),
            `must not have more than ${ANNOTATIONS_MAX} auditAnnotations`,
          ),
        ]
      : []),
    ...(yield* validateEachInSteps(annotations, ({ key, valueExpression }, i) => {
      const at = index(path, i);
      const twice = seen.has(key);
      seen.add(key);
      // The key of the audit annotation is prefixed with the policy's name.
      const full = `${policy}/${key}`;
      return [
        ...(policy === ""
          ? [invalidField(child(at, "key"), key, "requires metadata.name be non-empty")]
          : qualifiedName(full).map((problem) => invalidField(child(at, "key"), full, problem))),
        ...validateValue(valueExpression, variables, child(at, "valueExpression")),
        ...(twice ? [duplicateField(child(at, "key"), key)] : []),
      ];
    })),
  ];
}

function validateValue(expression: string, variables: PolicyVariables, path: string): readonly FieldError[] {
  if (expression.trim() !== "" && Buffer.byteLength(expression.trim()) > VALUE_EXPRESSION_BYTES_MAX) {
    return [requiredField(path, `must not exceed ${VALUE_EXPRESSION_BYTES_MAX} bytes in length`)];
  }
  const missing = "valueExpression is not specified";
  const errors = validateExpression(expression, variables.createEnvironment(), [stringType, nullType], path, missing);
  // As in Kubernetes, these errors show the text as sent, although spaces around it do not count.
  return errors.map((error) => (error.type === "FieldValueInvalid" ? { ...error, badValue: expression } : error));
}
