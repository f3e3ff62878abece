/** Expressions that say which requests a webhook or a policy is asked about. */
import { admissionEnvironment } from "../../api/admissionregistration/expressions.ts";
import type { MatchCondition } from "../../api/admissionregistration/rules.ts";
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import { compile, type Program } from "../../cel/cel.ts";
import { type Answer, authorizerValue, type Question, resourceCheckValue } from "../../cel/libraries/authorizer.ts";
import { dynamicOf } from "../../cel/adapter/json-value.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import type { Value } from "../../cel/values/value.ts";

/** What expressions may cost together, as in Kubernetes. */
const BUDGET = 2_500_000;
/** Questions that the expressions of one webhook may ask about one request: each sets out anew. */
const QUESTIONS_MAX = 64;

/** What expressions speak of, as JSON has it. */
export interface Spoken {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly request: Readonly<Record<string, unknown>>;
  /** Null where nobody may know. */
  readonly namespaceObject?: unknown;
  readonly user: UserInfo;
  /** What `authorizer.requestResource` is about. */
  readonly resource: Omit<Question, "verb">;
}

export interface Verdict {
  readonly matches: boolean;
  /** What went wrong, where the request is to be refused for it. */
  readonly problem?: string | undefined;
  /** Something went wrong, and nobody is refused for it. */
  readonly isOpen?: boolean | undefined;
}

export interface MatchConditions {
  /** Whether all hold. One that is false decides; where none is and some fail, `problem` tells, or nothing matches. */
  match(spoken: Spoken, authorizer: Authorizer): Promise<Verdict>;
}

interface Condition {
  readonly program: Program | undefined;
  readonly problem: string;
}

/** `failsOpen`: where an expression fails, the webhook is not asked rather than the request refused. */
export function matchConditions(conditions: readonly MatchCondition[], failsOpen: boolean): MatchConditions {
  const compiled = conditions.map(({ expression }): Condition => {
    const { program, errors } = compile(expression, admissionEnvironment());
    if (program !== undefined) return { program, problem: "" };
    return { program, problem: `compilation error: compilation failed: ${renderErrors(errors, expression)}` };
  });
  return {
    async match(spoken, authorizer) {
      const verdict = await evaluated(compiled, spoken, authorizer);
      return verdict.problem !== undefined && failsOpen ? { matches: false, isOpen: true } : verdict;
    },
  };
}

/** A question that the authorizer has to answer before the expression can go on. Passes through `||` and its like. */
class Asked extends Error {
  readonly question: Question;
  constructor(question: Question) {
    super("the authorizer is to be asked");
    this.question = question;
  }
}

/** Expressions do not wait: whenever one asks what is not known yet, that is found out, and all begin again. */
async function evaluated(conditions: readonly Condition[], spoken: Spoken, authorizer: Authorizer): Promise<Verdict> {
  const answers = new Map<string, Answer>();
  const ask = (question: Question): Answer => {
    const answer = answers.get(JSON.stringify(question));
    if (answer === undefined) throw new Asked(question);
    return answer;
  };
  const variables = variablesOf(spoken, ask);
  for (;;) {
    try {
      return evaluateAll(conditions, variables);
    } catch (error) {
      if (!(error instanceof Asked)) throw error;
      if (answers.size === QUESTIONS_MAX) {
        return { matches: false, problem: `expressions ask the authorizer more than ${QUESTIONS_MAX} questions` };
      }
      answers.set(JSON.stringify(error.question), await answerTo(error.question, spoken.user, authorizer));
    }
  }
}

function variablesOf(spoken: Spoken, ask: (question: Question) => Answer): Readonly<Record<string, () => Value>> {
  return {
    object: () => dynamicOf(spoken.object),
    oldObject: () => dynamicOf(spoken.oldObject),
    request: () => dynamicOf(spoken.request),
    namespaceObject: () => dynamicOf(spoken.namespaceObject ?? null),
    authorizer: () => authorizerValue(ask),
    "authorizer.requestResource": () => resourceCheckValue(ask, spoken.resource),
  };
}

function evaluateAll(conditions: readonly Condition[], variables: Readonly<Record<string, () => Value>>): Verdict {
  const problems: string[] = [];
  let left = BUDGET;
  for (const { program, problem } of conditions) {
    if (program === undefined) {
      problems.push(problem);
      continue;
    }
    const { value, error, cost } = program.evaluate(variables, { budget: left });
    left -= cost;
    if (error?.costExceeded === true) {
      const spent = "validation failed due to running out of cost budget, no further validation rules will be run";
      return { matches: false, problem: spent };
    }
    if (error !== undefined) problems.push(`expression '${program.source}' resulted in error: ${error.message}`);
    else if (value === false) return { matches: false };
  }
  if (problems.length === 0) return { matches: true };
  return { matches: false, problem: problems.length === 1 ? `${problems[0]}` : `[${problems.join(", ")}]` };
}

async function answerTo(question: Question, user: UserInfo, authorizer: Authorizer): Promise<Answer> {
  const { verb, path = "", serviceAccount, group = "", resource = "", subresource = "", ...more } = question;
  const { namespace = "", name = "", fieldSelector, labelSelector } = more;
  const { decision, reason, error } = await authorizer.authorize({
    user: serviceAccount === undefined ? user : accountUser(serviceAccount),
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

function accountUser({ namespace, name }: { readonly namespace: string; readonly name: string }): UserInfo {
  const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
  return { name: `system:serviceaccount:${namespace}:${name}`, uid: "", groups, extra: {} };
}
