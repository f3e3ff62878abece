import { unauthorized } from "../../api/status.ts";
import type { Authenticator } from "../../auth/user.ts";
import type { RequestContext, Stage } from "../context.ts";

/** Says who asks, or answers 401. */
export function authentication(authenticate: Authenticator): Stage {
  return (next) => async (context) => {
    const { request } = context;
    const user = await authenticate({
      certificates: request.peer.certificates,
      authorization: request.headers.authorization,
      header: (name) => request.headers[name],
      path: request.path,
    });
    if (user === undefined) throw unauthorized();
    return await next(withUser(context, user));
  };
}

/** Keeps the signal lazy, which spreading would not. */
function withUser(context: RequestContext, user: RequestContext["user"]): RequestContext {
  return {
    request: context.request,
    info: context.info,
    user,
    warnings: context.warnings,
    get signal() {
      return context.signal;
    },
  };
}
