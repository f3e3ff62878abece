/** Match conditions: CEL expressions that select the requests for which a webhook or a policy applies. */
import type { MatchCondition } from "../../api/admissionregistration/rules.ts";
import type { Variables } from "../../cel/cel.ts";
import type { Environment } from "../../cel/environment.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, runSteps, type Steps } from "../../std/async/steps.ts";
import { BudgetExhausted, type CompiledExpression, compileExpression, Evaluation } from "./evaluation.ts";

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
  match(bindings: Variables): MatchResult;
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
    match(bindings) {
      runSteps(compileAll());
      const result = evaluateAll(compiled, bindings);
      return result.error !== undefined && failsOpen ? { matches: false, failedOpen: true } : result;
    },
  };
}

function evaluateAll(conditions: readonly CompiledExpression[], bindings: Variables): MatchResult {
  const evaluation = new Evaluation(bindings, [], BUDGET);
  const errors: string[] = [];
  try {
    for (const condition of conditions) {
      const { value, error } = evaluation.evaluate(condition);
      if (value === false) return { matches: false };
      if (error !== undefined) errors.push(error);
    }
  } catch (error) {
    if (!(error instanceof BudgetExhausted)) throw error;
    return { matches: false, error: error.message };
  }
  if (errors.length === 0) return { matches: true };
  const distinct = [...new Set(errors)];
  return { matches: false, error: distinct.length === 1 ? `${distinct[0]}` : `[${distinct.join(", ")}]` };
}
