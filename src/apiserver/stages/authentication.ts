import { unauthorized } from "../../api/status.ts";
import type { Authenticator } from "../../auth/user.ts";
import { type Stage, withUser } from "../context.ts";

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
