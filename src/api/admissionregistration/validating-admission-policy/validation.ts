import { type CompileResult, compile } from "../../../cel/cel.ts";
import { boolType, errorType, nullType, type ObjectType, stringType, type Type } from "../../../cel/values/types.ts";
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1035Label, qualifiedName } from "../../meta/validation/names.ts";
import { parseApiVersion } from "../../scheme.ts";
import {
  type AdmissionEnvironmentOptions,
  createAdmissionEnvironment,
  expressionErrors,
  validateExpression,
} from "../expressions.ts";
import {
  FAILURE_POLICIES,
  validateChoice,
  validateMatchConditions,
  validateMatchResources,
} from "../rules-validation.ts";
import type {
  AuditAnnotation,
  ParamKind,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicySpec,
  Validation,
  Variable,
} from "./schema.ts";

/** Kubernetes documents `Unauthorized` too, and refuses it. */
const REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ANNOTATIONS_MAX = 20;
const VALUE_EXPRESSION_BYTES_MAX = 5 * 1024;
const IDENTIFIER = /^[_a-zA-Z][_a-zA-Z0-9]*$/;
const NOT_SPECIFIED = "expression is not specified";
const NOTHING_TO_DO = "validations or auditAnnotations must contain at least one item";

export function validatePolicy(object: ValidatingAdmissionPolicy): readonly FieldError[] {
  const spec = object.spec ?? {};
  const { paramKind, matchConstraints, failurePolicy, validations = [], auditAnnotations = [] } = spec;
  const params = paramKind !== undefined;
  const variables = new PolicyVariables({ params });
  const variableErrors = variables.declare(spec.variables ?? [], "spec.variables");
  return [
    ...(failurePolicy === undefined ? [requiredField("spec.failurePolicy")] : []),
    ...validateChoice(failurePolicy, FAILURE_POLICIES, "spec.failurePolicy"),
    ...(paramKind === undefined ? [] : validateParamKind(paramKind, "spec.paramKind")),
    ...validateConstraints(matchConstraints, "spec.matchConstraints"),
    ...validateMatchConditions(
      spec.matchConditions ?? [],
      createAdmissionEnvironment({ params }),
      "spec.matchConditions",
    ),
    ...variableErrors,
    ...(validations.length === 0 && auditAnnotations.length === 0
      ? [requiredField("spec.validations", NOTHING_TO_DO), requiredField("spec.auditAnnotations", NOTHING_TO_DO)]
      : []),
    ...validateEach(validations, (one, i) => validateValidation(one, variables, index("spec.validations", i))),
    ...validateAnnotations(auditAnnotations, object.metadata?.name ?? "", variables, "spec.auditAnnotations"),
  ];
}

function validateParamKind({ apiVersion = "", kind = "" }: ParamKind, path: string): readonly FieldError[] {
  const at = child(path, "apiVersion");
  const problems = dns1035Label(kind.toLowerCase());
  return [
    ...(apiVersion === "" ? [requiredField(at)] : validateParamVersion(apiVersion, at)),
    ...(kind === ""
      ? [requiredField(child(path, "kind"))]
      : problems.length === 0
        ? []
        : [
            invalidField(
              child(path, "kind"),
              kind,
              `may have mixed case, but should otherwise match: ${problems.join(",")}`,
            ),
          ]),
  ];
}

function validateParamVersion(apiVersion: string, path: string): readonly FieldError[] {
  const parsed = parseApiVersion(apiVersion);
  if (parsed === undefined) {
    return [invalidField(path, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  }
  return dns1035Label(parsed.version).map((problem) => invalidField(path, apiVersion, problem));
}

function validateConstraints(
  constraints: ValidatingAdmissionPolicySpec["matchConstraints"],
  path: string,
): readonly FieldError[] {
  if (constraints === undefined) return [requiredField(path)];
  const nothing = (constraints.resourceRules ?? []).length === 0;
  return [
    ...validateMatchResources(constraints, path),
    ...(nothing ? [requiredField(child(path, "resourceRules"))] : []),
  ];
}

/** The CEL variables of a policy. Each may refer to those before it, and other expressions to all. */
class PolicyVariables {
  readonly #names: AdmissionEnvironmentOptions;
  readonly #types = new Map<string, Type>();
  #declared = false;

  constructor(names: Pick<AdmissionEnvironmentOptions, "params">) {
    const type: ObjectType = {
      kind: "object",
      name: "kubernetes.variables",
      field: (name) => this.#types.get(name),
      fieldNames: () => [...this.#types.keys()],
    };
    this.#names = { ...names, variables: type };
  }

  /** `variables` is unknown to a policy without any. */
  get environment() {
    return createAdmissionEnvironment(this.#declared ? this.#names : { ...this.#names, variables: undefined });
  }

  declare(variables: readonly Variable[], path: string): readonly FieldError[] {
    this.#declared = variables.length > 0;
    return validateEach(variables, ({ name, expression }, i) => {
      const at = index(path, i);
      return [...this.#nameErrors(name, child(at, "name")), ...this.#add(name, expression, child(at, "expression"))];
    });
  }

  #nameErrors(name: string, path: string): readonly FieldError[] {
    if (name.trim() === "") return [requiredField(path, "name is not specified")];
    return IDENTIFIER.test(name) ? [] : [invalidField(path, name, "name is not a valid CEL identifier")];
  }

  #add(name: string, expression: string, path: string): readonly FieldError[] {
    if (expression.trim() === "") return [requiredField(path, NOT_SPECIFIED)];
    const compiled: CompileResult = compile(expression, this.environment);
    // Errors of a variable are reported here only, not where other expressions use it.
    this.#types.set(name, compiled.program?.resultType ?? errorType);
    return expressionErrors(compiled, expression, undefined, path);
  }
}

function validateValidation(validation: Validation, variables: PolicyVariables, path: string): readonly FieldError[] {
  const { expression, message = "", messageExpression = "", reason } = validation;
  const blank = messageExpression !== "" && messageExpression.trim() === "";
  return [
    ...validateExpression(expression, variables.environment, [boolType], child(path, "expression"), NOT_SPECIFIED),
    ...(blank
      ? [invalidField(child(path, "messageExpression"), messageExpression, "must be non-empty if specified")]
      : []),
    ...(messageExpression.trim() === ""
      ? []
      : validateExpression(messageExpression, variables.environment, [stringType], child(path, "messageExpression"))),
    ...validateMessage(message, expression, child(path, "message")),
    ...validateChoice(reason, REASONS, child(path, "reason")),
  ];
}

function validateMessage(message: string, expression: string, path: string): readonly FieldError[] {
  const text = message.trim();
  if (message !== "" && text === "") return [invalidField(path, message, "message must be non-empty if specified")];
  if (text.includes("\n")) return [invalidField(path, message, "message must not contain line breaks")];
  if (expression.trim().includes("\n") && text === "") {
    return [requiredField(path, "message must be specified if expression contains line breaks")];
  }
  return [];
}

function validateAnnotations(
  annotations: readonly AuditAnnotation[],
  policy: string,
  variables: PolicyVariables,
  path: string,
): readonly FieldError[] {
  const seen = new Set<string>();
  const many = annotations.length > ANNOTATIONS_MAX;
  return [
    ...(many ? [invalidField(path, annotations, `must not have more than ${ANNOTATIONS_MAX} auditAnnotations`)] : []),
    ...validateEach(annotations, ({ key, valueExpression }, i) => {
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
    }),
  ];
}

function validateValue(expression: string, variables: PolicyVariables, path: string): readonly FieldError[] {
  if (expression.trim() !== "" && Buffer.byteLength(expression.trim()) > VALUE_EXPRESSION_BYTES_MAX) {
    return [requiredField(path, `must not exceed ${VALUE_EXPRESSION_BYTES_MAX} bytes in length`)];
  }
  const missing = "valueExpression is not specified";
  return validateExpression(expression, variables.environment, [stringType, nullType], path, missing);
}
