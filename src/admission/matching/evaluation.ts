/** Evaluates the expressions of a webhook or a policy with one cost budget. */
import { type CompileResult, compile, type Program, type Variables } from "../../cel/cel.ts";
import { PER_CALL_COST_MAX } from "../../cel/cost/limits.ts";
import type { Environment } from "../../cel/environment.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import { dynType, type Type } from "../../cel/values/types.ts";
import { fail, MapValue, type Value } from "../../cel/values/value.ts";
import { goQuote } from "../../schema/value/go-quote.ts";

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

export function compiledExpression(source: string, { program, errors }: CompileResult): CompiledExpression {
  if (errors === undefined) return { source, program, error: "" };
  return { source, program: undefined, error: `compilation failed: ${renderErrors(errors, source)}` };
}

/** The budget of all expressions together is spent. */
export class BudgetExhausted extends Error {
  constructor() {
    super("validation failed due to running out of cost budget, no further validation rules will be run");
  }
}

/** The outcome of one expression: a value or an error. */
export type EvaluationResult =
  | { readonly value: Value; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: string };

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

  /** Throws `BudgetExhausted`. */
  evaluate({ source, program, error: compileError }: CompiledExpression): EvaluationResult {
    if (program === undefined) return { error: `compilation error: ${compileError}` };
    const { value, error, cost } = program.evaluate(this.#bindings, { budget: PER_CALL_COST_MAX });
    this.#charge(this.#variables.takeCost());
    this.#charge(cost);
    if (error === undefined) return { value };
    return { error: `expression '${source}' resulted in error: ${error.message}` };
  }

  #charge(cost: number): void {
    if (cost > this.#left) throw new BudgetExhausted();
    this.#left -= cost;
  }
}

/** `variables`: each is evaluated at most once, with the cost limit of an expression. */
class LazyVariables extends MapValue {
  readonly type: Type = { kind: "map", key: { kind: "string" }, value: dynType };
  readonly #bindings: () => Variables;
  readonly #variables: readonly CompiledVariable[];
  readonly #values = new Map<string, EvaluationResult>();
  #cost = 0;

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
    return cost;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string") return undefined;
    let result = this.#values.get(key);
    if (result === undefined) {
      const variable = this.#variables.findLast(({ name }) => name === key);
      if (variable === undefined) return undefined;
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
    return error === undefined ? { value } : { error: `${subject} fails to evaluate: ${error.message}` };
  }
}
