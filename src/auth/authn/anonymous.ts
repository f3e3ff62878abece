import { ANONYMOUS, type Authenticator, UNAUTHENTICATED, type UserInfo } from "../user.ts";

const anonymous: UserInfo = { name: ANONYMOUS, uid: "", groups: [UNAUTHENTICATED], extra: {} };

/** Authenticates requests as `system:anonymous` in the group `system:unauthenticated`; only for `paths`, if set. */
export function anonymousAuthenticator(
  options: { readonly paths?: readonly string[] | undefined } = {},
): Authenticator {
  const { paths } = options;
  return ({ path }) => {
    if (paths !== undefined && (path === undefined || !paths.includes(path))) return undefined;
    return anonymous;
  };
}
