/**
 * Expressions of the Common Expression Language as Kubernetes 1.33 uses them.
 *
 *     const names = environment({ variables: { self: typeOf(schema)! }, nameForms });
 *     const { program, errors } = compile("self.replicas <= self.maxReplicas", names, { result: boolType });
 *     if (errors !== undefined) throw new Error(renderErrors(errors, source));
 *     const outcome = program.evaluate({ self: nativeOf(schema, object) }, { budget: PER_CALL_COST_MAX });
 *
 * `environment` is in environment.ts, `typeOf` in declare.ts, `nativeOf` in native.ts, limits in limits.ts.
 */

import { checkLiterals } from "./check/check-literals.ts";
import type { CheckedExpression } from "./check/checked.ts";
import { check } from "./check/checker.ts";
import { isSameType } from "./check/unify.ts";
import { type CostEstimate, estimateCost } from "./cost/estimate.ts";
import { PER_CALL_COST_MAX } from "./cost/limits.ts";
import type { Environment } from "./environment.ts";
import { planEvaluation } from "./evaluate/evaluate.ts";
import { CostExceeded, Frame, type Interpretable } from "./evaluate/frame.ts";
import { parse } from "./parse/parser.ts";
import type { CelError } from "./parse/source.ts";
import { formatType, type Type } from "./values/types.ts";
import { comparisonCounter, Failure, type Value } from "./values/value.ts";

export interface CompileOptions {
  /** What the expression must give. `dyn` and unbound types do not fit: what they give is known too late. */
  readonly result?: Type;
}

export type CompileResult =
  | { readonly program: Program; readonly errors?: undefined }
  | { readonly program?: undefined; readonly errors: readonly CelError[] };

export interface Program {
  readonly source: string;
  readonly resultType: Type;
  /** Worked out when it is first asked for. */
  readonly estimate: CostEstimate;
  /** Whether the expression names the variable (`oldSelf`). */
  readonly uses: (variable: string) => boolean;
  /** Whatever goes wrong is in `error`. Variables may be functions, called when they are first needed. */
  readonly evaluate: (variables: Variables, options?: EvaluateOptions) => EvaluationResult;
}

export type Variables = Readonly<Record<string, Value | (() => Value)>>;

export interface EvaluateOptions {
  /** The evaluation ends with an error once it has cost more than this; `PER_CALL_COST_MAX` unless given. */
  readonly budget?: number;
}

export type EvaluationResult =
  | { readonly value: Value; readonly error?: undefined; readonly cost: number }
  | { readonly value?: undefined; readonly error: EvaluationError; readonly cost: number };

export interface EvaluationError {
  readonly message: string;
  /** The budget was used up. */
  readonly costExceeded: boolean;
}

/** Parses and checks. All mistakes that can be found at once are reported, at most 100. */
export function compile(source: string, names: Environment, options: CompileOptions = {}): CompileResult {
  const parsed = parse(source);
  if (parsed.errors !== undefined) return parsed;
  const result = check(parsed.expr, source, names);
  if (result.errors !== undefined) return result;
  const { checked } = result;
  const mistakes = checkLiterals(checked, source);
  if (mistakes.length > 0) return { errors: mistakes };
  const resultType = checked.typeOf(checked.expr);
  if (options.result !== undefined && !isSameType(options.result, resultType)) {
    const message = `must evaluate to ${formatType(options.result)}`;
    return { errors: [{ message, line: 1, column: 0 }] };
  }
  return { program: createProgram(source, checked, resultType) };
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
    evaluate: (values, { budget = PER_CALL_COST_MAX } = {}) => {
      const held = new Array<Value | undefined | (() => Value)>(slots);
      for (let i = 0; i < variables.length; i++) held[i] = values[variables[i]!];
      return evaluate(run, new Frame(held, budget));
    },
  };
}

function evaluate(run: Interpretable, frame: Frame): EvaluationResult {
  comparisonCounter.parts = 0;
  try {
    return { value: run(frame), cost: frame.spent };
  } catch (error) {
    const costExceeded = error instanceof CostExceeded;
    // Texts and numbers beyond what the engine holds; whatever else is thrown is a mistake of ours.
    if (!costExceeded && !(error instanceof Failure) && !(error instanceof RangeError)) throw error;
    return { error: { message: error.message, costExceeded }, cost: frame.spent };
  }
}
