/** The compiled expressions of a ValidatingAdmissionPolicy, and their evaluation for one request. */
import { createAdmissionEnvironment } from "../../api/admissionregistration/expressions.ts";
import { PolicyVariables } from "../../api/admissionregistration/policy-variables.ts";
import type {
  ValidatingAdmissionPolicy,
  Validation,
  Variable,
} from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import type { Variables } from "../../cel/cel.ts";
import { PER_CALL_COST_MAX, PER_RESOURCE_COST_MAX } from "../../cel/cost/limits.ts";
import { formatType } from "../../cel/values/types.ts";
import { typeOfValue, type Value } from "../../cel/values/value.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Steps } from "../../std/async/steps.ts";
import {
  type CompiledExpression,
  type CompiledVariable,
  compiledExpression,
  compileExpression,
  Evaluation,
  type EvaluationResult,
  exhaustionOf,
  type Results,
} from "../matching/evaluation.ts";
import type { ExpressionRunner } from "../matching/expression-runner.ts";
import { type MatchConditions, type MatchResult, matchConditions } from "../matching/match-conditions.ts";

/** A message that an expression computes is ignored if it is longer. */
const MESSAGE_BYTES_MAX = 5 * 1024;

export interface ValidatingPolicyProgram {
  readonly conditions: MatchConditions | undefined;
  readonly variables: readonly CompiledVariable[];
  readonly validations: readonly CompiledValidation[];
  readonly auditAnnotations: readonly CompiledAnnotation[];
}

interface CompiledValidation {
  readonly validation: Validation;
  readonly expression: CompiledExpression;
  readonly message: CompiledExpression | undefined;
}

interface CompiledAnnotation {
  readonly key: string;
  readonly expression: CompiledExpression;
}

/** Yields after each expression. */
export function* compileValidatingPolicy({ spec = {} }: ValidatingAdmissionPolicy): Steps<ValidatingPolicyProgram> {
  const { matchConditions: conditions = [], failurePolicy, validations = [], auditAnnotations = [] } = spec;
  const base = { params: spec.paramKind !== undefined, stored: true };
  const names = new PolicyVariables(base, true);
  const variables = yield* compileVariables(spec.variables, names);
  const environment = names.createEnvironment();
  const messages = names.createEnvironment({ authorizer: false });
  const compiled: CompiledValidation[] = [];
  for (const validation of validations) {
    const { expression, messageExpression = "" } = validation;
    compiled.push({
      validation,
      expression: compileExpression(expression, environment),
      message: messageExpression === "" ? undefined : compileExpression(messageExpression, messages),
    });
    yield;
  }
  const annotations: CompiledAnnotation[] = [];
  for (const { key, valueExpression } of auditAnnotations) {
    annotations.push({ key, expression: compileExpression(valueExpression, environment) });
    yield;
  }
  return {
    conditions:
      conditions.length === 0
        ? undefined
        : matchConditions(conditions, createAdmissionEnvironment(base), failurePolicy === "Ignore"),
    variables,
    validations: compiled,
    auditAnnotations: annotations,
  };
}

export function* compileVariables(
  variables: readonly Variable[] = [],
  names: PolicyVariables,
): Steps<readonly CompiledVariable[]> {
  const compiled: CompiledVariable[] = [];
  for (const variable of variables) {
    compiled.push({ name: variable.name, ...compiledExpression(variable.expression, names.compile(variable)) });
    yield;
  }
  return compiled;
}

/** The result of one validation. */
export type Decision =
  | { readonly outcome: "admit" }
  | { readonly outcome: "deny"; readonly message: string; readonly reason: string }
  /** The expression failed: the failure policy decides. */
  | { readonly outcome: "error"; readonly message: string };

export interface PolicyResult {
  /** By the index of the validation; one element if the policy as a whole failed. */
  readonly decisions: readonly Decision[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Errors of expressions of annotations. */
  readonly annotationErrors: readonly string[];
  /** The result of the match conditions; undefined if there are none. */
  readonly conditions: MatchResult | undefined;
}

const ADMIT: Decision = { outcome: "admit" };

/**
 * Evaluates the policy with one parameter object. `params` and `namespaceObject` are in `bindings`. Each expression may
 * take tens of milliseconds: `runner` runs them in turns of the event loop.
 */
export function evaluateValidatingPolicy(
  program: ValidatingPolicyProgram,
  bindings: Variables,
  runner: ExpressionRunner,
): MaybePromise<PolicyResult> {
  // In Kubernetes, match conditions have no namespace.
  const matching = program.conditions?.match({ ...bindings, namespaceObject: null }, runner);
  return andThen(matching, (conditions) => {
    if (conditions?.error !== undefined) return failed(conditions.error, conditions);
    if (conditions?.matches === false) return { decisions: [], annotations: [], annotationErrors: [], conditions };
    return andThen(validate(program, bindings, runner), (validated) => {
      if ("error" in validated) return failed(validated.error, conditions);
      return andThen(annotate(program, bindings, runner), (annotated) =>
        "error" in annotated ? failed(annotated.error, conditions) : { ...validated, ...annotated, conditions },
      );
    });
  });
}

function failed(message: string, conditions: MatchResult | undefined): PolicyResult {
  return { decisions: [{ outcome: "error", message }], annotations: [], annotationErrors: [], conditions };
}

/** The expressions exceed the budget. */
interface Exhausted {
  readonly error: string;
}

function validate(
  { validations, variables }: ValidatingPolicyProgram,
  bindings: Variables,
  runner: ExpressionRunner,
): MaybePromise<Pick<PolicyResult, "decisions"> | Exhausted> {
  const evaluation = new Evaluation(bindings, variables, PER_RESOURCE_COST_MAX);
  const evaluating = evaluation.evaluateEach(
    validations.map(({ expression }) => expression),
    runner,
  );
  return andThen(evaluating, (results) => {
    const error = exhaustionOf(results);
    if (error !== undefined) return { error };
    const creating = createMessages(validations, variables, results, { bindings, budget: evaluation.left, runner });
    return andThen(creating, (messages) => ({
      decisions: validations.map((each, index) => decide(each, results[index], messages[index])),
    }));
  });
}

function decide(
  { validation }: CompiledValidation,
  result: EvaluationResult | undefined,
  message: EvaluationResult | undefined,
): Decision {
  if (result?.error !== undefined) return { outcome: "error", message: result.error };
  if (message?.isExhausted === true) {
    return { outcome: "error", message: `failed messageExpression: ${message.error}` };
  }
  if (result?.value === true) return ADMIT;
  return { outcome: "deny", message: denialMessage(validation, message), reason: validation.reason || "Invalid" };
}

interface MessageOptions {
  readonly bindings: Variables;
  readonly budget: number;
  readonly runner: ExpressionRunner;
}

/**
 * By the index of the validation. Message expressions of all validations count against the budget, also of those that
 * are true: if they exceed it, none has another message.
 */
function createMessages(
  validations: readonly CompiledValidation[],
  variables: readonly CompiledVariable[],
  results: Results,
  { bindings, budget, runner }: MessageOptions,
): MaybePromise<Results> {
  const count = validations.filter(({ message }) => message !== undefined).length;
  if (count === 0) return [];
  // Where they cannot exceed it, those that nothing needs are not evaluated.
  const isBounded = (count + variables.length) * PER_CALL_COST_MAX < budget;
  if (isBounded && !results.some((result) => result?.value === false)) return [];
  const evaluation = new Evaluation(withoutAuthorizer(bindings), variables, budget);
  const evaluating = evaluation.evaluateEach(
    validations.map(({ message }) => message),
    runner,
  );
  return andThen(evaluating, (messages) => {
    const last = messages.at(-1);
    return last?.isExhausted === true ? validations.map(() => last) : messages;
  });
}

function withoutAuthorizer({ authorizer: _, "authorizer.requestResource": __, ...bindings }: Variables): Variables {
  return bindings;
}

function denialMessage({ message = "", expression }: Validation, computed: EvaluationResult | undefined): string {
  const text = typeof computed?.value === "string" ? computed.value.trim() : "";
  const isUsable = text !== "" && Buffer.byteLength(text) <= MESSAGE_BYTES_MAX && !text.includes("\n");
  return (isUsable ? text : "") || message.trim() || `failed expression: ${expression.trim()}`;
}

function annotate(
  { auditAnnotations, variables }: ValidatingPolicyProgram,
  bindings: Variables,
  runner: ExpressionRunner,
): MaybePromise<Pick<PolicyResult, "annotations" | "annotationErrors"> | Exhausted> {
  if (auditAnnotations.length === 0) return { annotations: [], annotationErrors: [] };
  // Kubernetes compiles expressions of annotations with an authorizer, and evaluates them without.
  const evaluation = new Evaluation(withoutAuthorizer(bindings), variables, PER_RESOURCE_COST_MAX);
  const evaluating = evaluation.evaluateEach(
    auditAnnotations.map(({ expression }) => expression),
    runner,
  );
  return andThen(evaluating, (results) => {
    const exhaustion = exhaustionOf(results);
    if (exhaustion !== undefined) return { error: exhaustion };
    const annotations: { key: string; value: string }[] = [];
    const annotationErrors: string[] = [];
    for (const [index, { key, expression }] of auditAnnotations.entries()) {
      const { value, error } = results[index] ?? {};
      if (error !== undefined) annotationErrors.push(error);
      else if (typeof value === "string" && value.trim() !== "") annotations.push({ key, value: value.trim() });
      else if (typeof value !== "string" && value !== null) annotationErrors.push(unsupportedType(expression, value));
    }
    return { annotations, annotationErrors };
  });
}

function unsupportedType({ source }: CompiledExpression, value: Value | undefined): string {
  const type = value === undefined ? "" : formatType(typeOfValue(value));
  return (
    `valueExpression '${source}' resulted in unsupported return type: ${type}. ` +
    "Return type must be either string or null."
  );
}
