/**
 * The Common Expression Language (CEL) as in Kubernetes 1.33.
 *
 *     const environment = createEnvironment({ variables: { self: celTypeOf(schema)! }, nameFormats });
 *     const compiled = compile("self.replicas <= self.maxReplicas", environment, { result: boolType });
 *     if (compiled.program === undefined) throw new Error(describeFailure(compiled, source));
 *     const variables = { self: toCelValue(schema, object) };
 *     const result = compiled.program.evaluate(variables, { budget: PER_CALL_COST_MAX });
 *
 * The stages are folders: `parse/` (text to tree, macros), `check/` (types and overloads), `cost/` (estimates and
 * limits) and `evaluate/` (tree to closures). `adapter/` converts schemas and JSON to CEL types and values,
 * `libraries/` contains the functions.
 */

import { checkLiterals } from "./check/check-literals.ts";
import type { CheckedExpression } from "./check/checked-expression.ts";
import { check } from "./check/checker.ts";
import { isSameType } from "./check/unify.ts";
import { type CostEstimate, estimateCost } from "./cost/estimate.ts";
import { PER_CALL_COST_MAX } from "./cost/limits.ts";
import type { Environment } from "./environment.ts";
import { InstantiationError } from "./evaluate/constant-folding.ts";
import { CostExceeded, Frame, type Interpretable } from "./evaluate/frame.ts";
import { planEvaluation } from "./evaluate/planner.ts";
import { resetScans } from "./libraries/characters.ts";
import { parse } from "./parse/parser.ts";
import { type CelError, renderErrors } from "./parse/source.ts";
import { formatType, type Type } from "./values/types.ts";
import { comparisonCounter, Failure, type Value } from "./values/value.ts";

export interface CompileOptions {
  /** The required type of the result. `dyn` and unbound types do not satisfy it. */
  readonly result?: Type;
}

export type CompileResult =
  | { readonly program: Program; readonly errors?: undefined }
  | ({ readonly program?: undefined } & CompileFailure);

export interface CompileFailure {
  readonly errors: readonly CelError[];
  /**
   * `result`: the expression has another type than required. `instantiation`: the conversion of a constant fails
   * (`int('x')`), or a constant is no regular expression.
   */
  readonly stage: "compilation" | "result" | "instantiation";
}

export interface Program {
  readonly source: string;
  readonly resultType: Type;
  /** Computed at the first access. */
  readonly estimate: CostEstimate;
  /** Whether the expression uses the variable (`oldSelf`). */
  readonly uses: (variable: string) => boolean;
  /** Failures are returned in `error`. Variables can be functions, which are called when first read. */
  readonly evaluate: (variables: Variables, options?: EvaluateOptions) => EvaluationResult;
}

export type Variables = Readonly<Record<string, Value | (() => Value)>>;

export interface EvaluateOptions {
  /** The cost limit of the evaluation; `PER_CALL_COST_MAX` by default. */
  readonly budget?: number;
}

export type EvaluationResult =
  | { readonly value: Value; readonly error?: undefined; readonly cost: number }
  | { readonly value?: undefined; readonly error: EvaluationError; readonly cost: number };

export interface EvaluationError {
  readonly message: string;
  /** The evaluation exceeded its budget. */
  readonly costExceeded: boolean;
}

/** Parses and checks an expression. Returns all errors of the stage that fails, at most 100. */
export function compile(source: string, environment: Environment, options: CompileOptions = {}): CompileResult {
  const parsed = parse(source);
  if (parsed.errors !== undefined) return { ...parsed, stage: "compilation" };
  const result = check(parsed.expr, source, environment);
  if (result.errors !== undefined) return { ...result, stage: "compilation" };
  const { checked } = result;
  const literalErrors = checkLiterals(checked, source, environment);
  if (literalErrors.length > 0) return { errors: literalErrors, stage: "compilation" };
  const resultType = checked.typeOf(checked.expr);
  if (options.result !== undefined && !isSameType(options.result, resultType)) {
    return failure("result", `must evaluate to ${formatType(options.result)}`);
  }
  try {
    return { program: createProgram(source, checked, resultType) };
  } catch (error) {
    if (error instanceof InstantiationError) return failure("instantiation", error.message);
    throw error;
  }
}

function failure(stage: CompileFailure["stage"], message: string): CompileResult {
  return { errors: [{ message, line: 1, column: 0 }], stage };
}

/** The failure as Kubernetes describes it. */
export function describeFailure({ errors, stage }: CompileFailure, source: string): string {
  if (stage === "compilation") return `compilation failed: ${renderErrors(errors, source)}`;
  return stage === "result" ? errors[0]!.message : `program instantiation failed: ${errors[0]!.message}`;
}

function createProgram(source: string, checked: CheckedExpression, resultType: Type): Program {
  const { run, variables, slots } = planEvaluation(checked);
  let estimate: CostEstimate | undefined;
  return {
    source,
    resultType,
    get estimate() {
      estimate ??= estimateCost(checked);
      return estimate;
    },
    uses: (variable) => variables.includes(variable),
    evaluate: (bindings, { budget = PER_CALL_COST_MAX } = {}) => {
      const values = new Array<Value | undefined | (() => Value)>(slots);
      for (let i = 0; i < variables.length; i++) values[i] = bindings[variables[i]!];
      return evaluate(run, new Frame(values, budget));
    },
  };
}

function evaluate(run: Interpretable, frame: Frame): EvaluationResult {
  comparisonCounter.parts = 0;
  resetScans();
  try {
    return { value: run(frame), cost: frame.spent };
  } catch (error) {
    const costExceeded = error instanceof CostExceeded;
    // RangeError: a string or bigint exceeds the limits of V8. Everything else is a bug.
    if (!costExceeded && !(error instanceof Failure) && !(error instanceof RangeError)) throw error;
    return { error: { message: error.message, costExceeded }, cost: frame.spent };
  }
}
