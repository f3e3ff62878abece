/**
 * Expressions of the Common Expression Language as Kubernetes 1.33 uses them.
 *
 *     const env = environment({ variables: { self: typeOf(schema)! } });
 *     const { program, errors } = compile("self.replicas <= self.maxReplicas", env, { result: boolType });
 *     if (errors !== undefined) throw new Error(renderErrors(errors));
 *     const outcome = program.evaluate({ self: nativeOf(schema, object) }, { budget: PER_CALL_COST_MAX });
 *
 * `typeOf` is in declare.ts, `nativeOf` in native.ts, limits in limits.ts.
 */
import type { Type } from "./types.ts";
import type { Value } from "./value.ts";

export interface EnvironmentOptions {
  /** What an expression may name, with its type. */
  readonly variables: Readonly<Record<string, Type>>;
}

/** Names, functions and macros that expressions know. Made once, used for many expressions. */
export interface Environment {
  readonly variables: ReadonlyMap<string, Type>;
}

export interface CompileOptions {
  /** What the expression must give: another type is an error. `dyn` fits every type, at load. */
  readonly result?: Type;
}

export type Compiled =
  | { readonly program: Program; readonly errors?: undefined }
  | { readonly program?: undefined; readonly errors: readonly CelError[] };

/** A mistake in an expression. Lines count from 1; columns from 0, in characters. */
export interface CelError {
  readonly message: string;
  readonly line: number;
  readonly column: number;
}

export interface Program {
  readonly source: string;
  readonly resultType: Type;
  readonly estimate: CostEstimate;
  /** Whether the expression names the variable (`oldSelf`). */
  readonly uses: (variable: string) => boolean;
  /** Never throws: whatever goes wrong is in `error`. Variables may be functions, called when they are first needed. */
  readonly evaluate: (variables: Variables, options?: EvaluateOptions) => Outcome;
}

export type Variables = Readonly<Record<string, Value | (() => Value)>>;

export interface EvaluateOptions {
  /** The evaluation ends with an error once it has cost more than this; `PER_CALL_COST_MAX` unless given. */
  readonly budget?: number;
}

export type Outcome =
  | { readonly value: Value; readonly error?: undefined; readonly cost: number }
  | { readonly value?: undefined; readonly error: EvaluationError; readonly cost: number };

export interface EvaluationError {
  readonly message: string;
  /** The budget was used up. */
  readonly costExceeded: boolean;
}

/** Known before anything is evaluated; `max` may be `Infinity`. */
export interface CostEstimate {
  readonly min: number;
  readonly max: number;
  /** The lists, maps and strings without a bound that the cost grows with, dearest first: `self.items`. */
  readonly unbounded: readonly UnboundedPart[];
}

export interface UnboundedPart {
  /** `self.spec.items`, `self.names[*]`, `self.labels.*`. */
  readonly path: string;
  readonly bound: "maxItems" | "maxLength" | "maxProperties";
}

/** Parses and checks. All mistakes that can be found at once are reported, at most 100. */
export declare function compile(source: string, environment: Environment, options?: CompileOptions): Compiled;

export declare function environment(options: EnvironmentOptions): Environment;

/** All errors as cel-go prints them, each with its line and a mark below it. */
export declare function renderErrors(errors: readonly CelError[], source: string): string;
