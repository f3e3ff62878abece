/** Evaluates the expressions of a webhook or a policy with one cost budget. */
import { type CompileResult, compile, describeFailure, type Program, type Variables } from "../../cel/cel.ts";
import { PER_CALL_COST_MAX } from "../../cel/cost/limits.ts";
import type { Environment } from "../../cel/environment.ts";
import { dynType, type Type } from "../../cel/values/types.ts";
import { fail, MapValue, type Value } from "../../cel/values/value.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { andThen, forEachInOrder, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { type ExpressionRunner, Pending } from "./expression-runner.ts";

/** An expression of a stored object, which this version may be unable to compile. */
export interface CompiledExpression {
  readonly source: string;
  readonly program: Program | undefined;
  /** Empty if the expression compiles. */
  readonly error: string;
}

export interface CompiledVariable extends CompiledExpression {
  readonly name: string;
}

export function compileExpression(source: string, environment: Environment): CompiledExpression {
  return compiledExpression(source, compile(source, environment));
}

export function compiledExpression(source: string, compiled: CompileResult): CompiledExpression {
  const { program } = compiled;
  if (program !== undefined) return { source, program, error: "" };
  return { source, program: undefined, error: describeFailure(compiled, source) };
}

/** The outcome of one expression: a value or an error. */
export type EvaluationResult =
  | { readonly value: Value; readonly error?: undefined; readonly isExhausted?: undefined }
  /** `isExhausted`: the budget of all expressions together is spent. */
  | { readonly value?: undefined; readonly error: string; readonly isExhausted?: true };

const EXHAUSTED: EvaluationResult = {
  error: "validation failed due to running out of cost budget, no further validation rules will be run",
  isExhausted: true,
};

/** By the index of the expression; undefined where there is none. */
export type Results = readonly (EvaluationResult | undefined)[];

/** The error of the expression that exceeded the budget, after which no other was evaluated. */
export function exhaustionOf(results: Results): string | undefined {
  const last = results.at(-1);
  return last?.isExhausted === true ? last.error : undefined;
}

/** The evaluation of several expressions with the same variables. `variables.NAME` is evaluated at its first use. */
export class Evaluation {
  readonly #bindings: Variables;
  readonly #variables: LazyVariables;
  #left: number;

  constructor(bindings: Variables, variables: readonly CompiledVariable[], budget: number) {
    this.#variables = new LazyVariables(variables, () => this.#bindings);
    this.#bindings = { ...bindings, variables: this.#variables };
    this.#left = budget;
  }

  /** The rest of the budget. */
  get left(): number {
    return this.#left;
  }

  evaluate(expression: CompiledExpression, runner: ExpressionRunner): MaybePromise<EvaluationResult> {
    return runner.run(() => this.#evaluate(expression));
  }

  /** The results by index, up to one that decides and that of the expression that exceeds the budget. */
  evaluateEach(
    expressions: readonly (CompiledExpression | undefined)[],
    runner: ExpressionRunner,
    decides: (result: EvaluationResult) => boolean = () => false,
  ): MaybePromise<Results> {
    const results: (EvaluationResult | undefined)[] = [];
    let isOver = false;
    const done = forEachInOrder(expressions, (expression) => {
      if (isOver) return;
      const evaluating = expression && this.evaluate(expression, runner);
      return andThen(evaluating, (result) => {
        results.push(result);
        isOver = result !== undefined && (result.isExhausted === true || decides(result));
      });
    });
    return andThen(done, () => results);
  }

  #evaluate({ source, program, error: compileError }: CompiledExpression): EvaluationResult {
    if (program === undefined) return { error: `compilation error: ${compileError}` };
    const { value, error, cost } = program.evaluate(this.#bindings, { budget: PER_CALL_COST_MAX });
    const spent = this.#variables.takeCost() + cost;
    if (spent > this.#left) return EXHAUSTED;
    this.#left -= spent;
    if (error === undefined) return { value };
    return { error: `expression '${source}' resulted in error: ${error.message}` };
  }
}

/** The cost of variables after which the next is evaluated in another turn of the event loop: some milliseconds. */
const TURN_COST = 100_000;

/** `variables`: each is evaluated at most once, with the cost limit of an expression. */
class LazyVariables extends MapValue {
  readonly type: Type = { kind: "map", key: { kind: "string" }, value: dynType };
  readonly #bindings: () => Variables;
  readonly #variables: readonly CompiledVariable[];
  readonly #values = new Map<string, EvaluationResult>();
  #cost = 0;
  #costOfTurn = 0;

  constructor(variables: readonly CompiledVariable[], bindings: () => Variables) {
    super();
    this.#variables = variables;
    this.#bindings = bindings;
  }

  get size(): number {
    return this.#variables.length;
  }

  /** The cost since the previous call. */
  takeCost(): number {
    const cost = this.#cost;
    this.#cost = 0;
    this.#costOfTurn = 0;
    return cost;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string") return undefined;
    let result = this.#values.get(key);
    if (result === undefined) {
      const variable = this.#variables.findLast(({ name }) => name === key);
      if (variable === undefined) return undefined;
      if (this.#costOfTurn > TURN_COST) {
        throw new Pending(() => {
          this.#costOfTurn = 0;
          this.#values.set(key, this.#evaluate(variable));
        });
      }
      result = this.#evaluate(variable);
      this.#values.set(key, result);
    }
    return result.error === undefined ? result.value : fail(result.error);
  }

  override has(key: Value): boolean {
    return this.#variables.some(({ name }) => name === key);
  }

  keys(): Iterable<Value> {
    return this.#variables.map(({ name }) => name);
  }

  #evaluate({ name, program, error: compileError }: CompiledVariable): EvaluationResult {
    const subject = `composited variable ${goQuote(name)}`;
    if (program === undefined) return { error: `${subject} fails to compile: ${compileError}` };
    const { value, error, cost } = program.evaluate(this.#bindings(), { budget: PER_CALL_COST_MAX });
    this.#cost += cost;
    this.#costOfTurn += cost;
    return error === undefined ? { value } : { error: `${subject} fails to evaluate: ${error.message}` };
  }
}
