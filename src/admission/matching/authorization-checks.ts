/** Authorization checks by the expressions of one request: `authorizer.group('').resource('pods').check('get')`. */
import type { Authorizer, UserInfo } from "../../auth/user.ts";
import type { AuthorizationDecision, CheckAttributes } from "../../cel/libraries/authorizer.ts";
import { Pending } from "./expression-runner.ts";

/** Results are cached, since each check that has none restarts the evaluation. */
export class AuthorizationChecks {
  readonly #user: UserInfo;
  readonly #authorizer: Authorizer;
  readonly #results = new Map<string, AuthorizationDecision>();

  constructor(user: UserInfo, authorizer: Authorizer) {
    this.#user = user;
    this.#authorizer = authorizer;
  }

  /** For expressions that an `ExpressionRunner` runs. */
  readonly check = (check: CheckAttributes): AuthorizationDecision => {
    const key = JSON.stringify(check);
    const result = this.#results.get(key);
    if (result !== undefined) return result;
    // The cost of a check bounds their number.
    throw new Pending(async () => {
      this.#results.set(key, await authorize(check, this.#user, this.#authorizer));
    });
  };
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
