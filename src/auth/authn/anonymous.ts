import { ANONYMOUS, type Authenticator, UNAUTHENTICATED, type UserInfo } from "../user.ts";

const anonymous: UserInfo = { name: ANONYMOUS, uid: "", groups: [UNAUTHENTICATED], extra: {} };

/** Everybody else: `system:anonymous` in group `system:unauthenticated`; only for `paths` when given. */
export function anonymousAuthenticator(
  options: { readonly paths?: readonly string[] | undefined } = {},
): Authenticator {
  const { paths } = options;
  return ({ path }) => {
    if (paths !== undefined && (path === undefined || !paths.includes(path))) return undefined;
    return anonymous;
  };
}
