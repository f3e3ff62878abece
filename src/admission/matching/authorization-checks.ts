/** Authorization checks by the expressions of one request: `authorizer.group('').resource('pods').check('get')`. */
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import type { AuthorizationDecision, CheckAttributes } from "../../cel/libraries/authorizer.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";

/** Thrown for an authorization check without a cached result. The logical operators do not swallow it. */
class CheckPending extends Error {
  readonly check: CheckAttributes;

  constructor(check: CheckAttributes) {
    super("an authorization check has no result yet");
    this.check = check;
  }
}

/** Results are cached, since each check that has none restarts the evaluation. */
export class AuthorizationChecks {
  readonly #user: UserInfo;
  readonly #authorizer: Authorizer;
  readonly #results = new Map<string, AuthorizationDecision>();

  constructor(user: UserInfo, authorizer: Authorizer) {
    this.#user = user;
    this.#authorizer = authorizer;
  }

  /** For expressions, within `run`. */
  readonly check = (check: CheckAttributes): AuthorizationDecision => {
    const result = this.#results.get(JSON.stringify(check));
    if (result === undefined) throw new CheckPending(check);
    return result;
  };

  /**
   * Evaluation is synchronous: when it needs a check that has no result yet, the check runs and evaluation restarts.
   * The cost of a check bounds their number.
   */
  run<T>(evaluate: () => T): MaybePromise<T> {
    try {
      return evaluate();
    } catch (error) {
      if (!(error instanceof CheckPending)) throw error;
      return this.#runAgain(evaluate, error.check);
    }
  }

  async #runAgain<T>(evaluate: () => T, first: CheckAttributes): Promise<T> {
    let pending = first;
    for (;;) {
      this.#results.set(JSON.stringify(pending), await authorize(pending, this.#user, this.#authorizer));
      try {
        return evaluate();
      } catch (error) {
        if (!(error instanceof CheckPending)) throw error;
        pending = error.check;
      }
    }
  }
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
