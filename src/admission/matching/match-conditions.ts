/** Match conditions: CEL expressions that select the requests for which a webhook or a policy applies. */
import { createAdmissionEnvironment } from "../../api/admissionregistration/expressions.ts";
import type { MatchCondition } from "../../api/admissionregistration/rules.ts";
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import { toDynamicCelValue } from "../../cel/adapter/json-value.ts";
import { compile, type Program } from "../../cel/cel.ts";
import {
  type AuthorizationDecision,
  authorizerValue,
  type CheckAttributes,
  resourceCheckValue,
} from "../../cel/libraries/authorizer.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import type { Value } from "../../cel/values/value.ts";

/** The cost limit of all expressions together, as in Kubernetes. */
const BUDGET = 2_500_000;
/**
 * The number of authorization checks of the expressions of one webhook for one request; each one restarts evaluation.
 */
const CHECKS_MAX = 64;

/** The variables of the expressions, as JSON. */
export interface ExpressionVariables {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: Readonly<Record<string, unknown>>;
  /** Null for cluster-scoped objects. */
  readonly namespaceObject?: unknown;
  readonly user: UserInfo;
  /** The target of `authorizer.requestResource`. */
  readonly resource: Omit<CheckAttributes, "verb">;
}

export interface MatchResult {
  readonly matches: boolean;
  /** The error with which the request is rejected. */
  readonly error?: string | undefined;
  /** An expression failed, and the failure policy is Ignore. */
  readonly failedOpen?: boolean | undefined;
}

export interface MatchConditions {
  /**
   * Whether all conditions are true. A condition that is false decides. Otherwise, if some fail to evaluate, the result
   * has the error, or nothing matches.
   */
  match(variables: ExpressionVariables, authorizer: Authorizer): Promise<MatchResult>;
}

interface Condition {
  readonly program: Program | undefined;
  readonly compileError: string;
}

/** `failsOpen`: if an expression fails, the webhook is skipped instead of rejecting the request. */
export function matchConditions(conditions: readonly MatchCondition[], failsOpen: boolean): MatchConditions {
  const compiled = conditions.map(({ expression }): Condition => {
    const { program, errors } = compile(expression, createAdmissionEnvironment());
    if (program !== undefined) return { program, compileError: "" };
    return { program, compileError: `compilation error: compilation failed: ${renderErrors(errors, expression)}` };
  });
  return {
    async match(spoken, authorizer) {
      const verdict = await evaluateConditions(compiled, spoken, authorizer);
      return verdict.error !== undefined && failsOpen ? { matches: false, failedOpen: true } : verdict;
    },
  };
}

/** Thrown for an authorization check without a cached result. The logical operators do not swallow it. */
class CheckPending extends Error {
  readonly check: CheckAttributes;
  constructor(question: CheckAttributes) {
    super("an authorization check has no result yet");
    this.check = question;
  }
}

/**
 * Evaluation is synchronous. When an expression needs an authorization check that has no result yet, the check runs and
 * evaluation restarts.
 */
async function evaluateConditions(
  conditions: readonly Condition[],
  input: ExpressionVariables,
  authorizer: Authorizer,
): Promise<MatchResult> {
  const answers = new Map<string, AuthorizationDecision>();
  const lookUp = (question: CheckAttributes): AuthorizationDecision => {
    const answer = answers.get(JSON.stringify(question));
    if (answer === undefined) throw new CheckPending(question);
    return answer;
  };
  const variables = variablesOf(input, lookUp);
  for (;;) {
    try {
      return evaluateAll(conditions, variables);
    } catch (error) {
      if (!(error instanceof CheckPending)) throw error;
      if (answers.size === CHECKS_MAX) {
        return { matches: false, error: `expressions make more than ${CHECKS_MAX} authorization checks` };
      }
      answers.set(JSON.stringify(error.check), await authorize(error.check, input.user, authorizer));
    }
  }
}

function variablesOf(
  input: ExpressionVariables,
  check: (question: CheckAttributes) => AuthorizationDecision,
): Readonly<Record<string, () => Value>> {
  return {
    object: () => toDynamicCelValue(input.object),
    oldObject: () => toDynamicCelValue(input.oldObject),
    request: () => toDynamicCelValue(input.request),
    namespaceObject: () => toDynamicCelValue(input.namespaceObject ?? null),
    authorizer: () => authorizerValue(check),
    "authorizer.requestResource": () => resourceCheckValue(check, input.resource),
  };
}

function evaluateAll(conditions: readonly Condition[], variables: Readonly<Record<string, () => Value>>): MatchResult {
  const problems: string[] = [];
  let left = BUDGET;
  for (const { program, compileError } of conditions) {
    if (program === undefined) {
      problems.push(compileError);
      continue;
    }
    const { value, error, cost } = program.evaluate(variables, { budget: left });
    left -= cost;
    if (error?.costExceeded === true) {
      const spent = "validation failed due to running out of cost budget, no further validation rules will be run";
      return { matches: false, error: spent };
    }
    if (error !== undefined) problems.push(`expression '${program.source}' resulted in error: ${error.message}`);
    else if (value === false) return { matches: false };
  }
  if (problems.length === 0) return { matches: true };
  return { matches: false, error: problems.length === 1 ? `${problems[0]}` : `[${problems.join(", ")}]` };
}

async function authorize(
  check: CheckAttributes,
  user: UserInfo,
  authorizer: Authorizer,
): Promise<AuthorizationDecision> {
  const { verb, path = "", serviceAccount, group = "", resource = "", subresource = "", ...more } = check;
  const { namespace = "", name = "", fieldSelector, labelSelector } = more;
  const { decision, reason, error } = await authorizer.authorize({
    user: serviceAccount === undefined ? user : serviceAccountUser(serviceAccount),
    verb,
    isResourceRequest: path === "",
    namespace,
    apiGroup: group,
    apiVersion: path === "" ? "*" : "",
    resource,
    subresource,
    name,
    path,
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  });
  return { allowed: decision === "allow", reason, ...(error === undefined ? {} : { error }) };
}

function serviceAccountUser({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo {
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
  return { name: `system:serviceaccount:${namespace}:${name}`, uid: "", groups, extra: {} };
}
