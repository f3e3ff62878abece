/** Match conditions: CEL expressions that select the requests for which a webhook or a policy applies. */
import type { MatchCondition } from "../../api/admissionregistration/rules.ts";
import type { Variables } from "../../cel/cel.ts";
import type { Environment } from "../../cel/environment.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, runSteps, type Steps } from "../../std/async/steps.ts";
import { type CompiledExpression, compileExpression, Evaluation, exhaustionOf, type Results } from "./evaluation.ts";
import type { ExpressionRunner } from "./expression-runner.ts";

/** The cost limit of all expressions together, as in Kubernetes. */
const BUDGET = 2_500_000;

export interface MatchResult {
  readonly matches: boolean;
  /** The error with which the request is rejected. */
  readonly error?: string | undefined;
  /** An expression failed, and the failure policy is Ignore. */
  readonly failedOpen?: boolean | undefined;
}

export interface MatchConditions {
  /** Compiles the expressions, in turns of the event loop; otherwise the first `match` does. */
  compile(): MaybePromise<void>;
  /**
   * Whether all conditions are true. A condition that is false decides. Otherwise, if some fail to evaluate, the result
   * has the error, or nothing matches.
   */
  match(bindings: Variables, runner: ExpressionRunner): MaybePromise<MatchResult>;
}

/** `failsOpen`: if an expression fails, the webhook or policy does not apply, instead of rejecting the request. */
export function matchConditions(
  conditions: readonly MatchCondition[],
  environment: Environment,
  failsOpen: boolean,
): MatchConditions {
  const compiled: CompiledExpression[] = [];
  const compileNext = (): boolean => {
    const next = conditions[compiled.length];
    if (next !== undefined) compiled.push(compileExpression(next.expression, environment));
    return next !== undefined;
  };
  function* compileAll(): Steps<void> {
    while (compileNext()) yield;
  }
  return {
    compile: () => (compiled.length === conditions.length ? undefined : runInSlices(compileAll())),
    match(bindings, runner) {
      runSteps(compileAll());
      return andThen(evaluateAll(compiled, bindings, runner), (result) =>
        result.error !== undefined && failsOpen ? { matches: false, failedOpen: true } : result,
      );
    },
  };
}

function evaluateAll(
  conditions: readonly CompiledExpression[],
  bindings: Variables,
  runner: ExpressionRunner,
): MaybePromise<MatchResult> {
  const evaluation = new Evaluation(bindings, [], BUDGET);
  return andThen(
    evaluation.evaluateEach(conditions, runner, ({ value }) => value === false),
    toMatchResult,
  );
}

function toMatchResult(results: Results): MatchResult {
  if (results.at(-1)?.value === false) return { matches: false };
  const error = exhaustionOf(results);
  if (error !== undefined) return { matches: false, error };
  const errors = new Set(results.flatMap((result) => result?.error ?? []));
  if (errors.size === 0) return { matches: true };
  const [first = ""] = errors;
  return { matches: false, error: errors.size === 1 ? first : `[${[...errors].join(", ")}]` };
}
