import { StatusError, unauthorized } from "../../api/status.ts";
import { AUTHENTICATED, type Authenticator, UNAUTHENTICATED, type UserInfo } from "../user.ts";
import { bearerToken } from "./token.ts";

/**
 * Asks in order and takes the first user; whoever is known joins `system:authenticated`. Credentials that are bad, or
 * that nobody knows, fail when no other authenticator finds a user; they never make an anonymous one.
 */
export function unionAuthenticator(authenticators: readonly Authenticator[], anonymous?: Authenticator): Authenticator {
  return async (credentials) => {
    let refusal: StatusError | undefined;
    for (const authenticate of authenticators) {
      try {
        const user = await authenticate(credentials);
        if (user !== undefined) return authenticated(user);
      } catch (error) {
        if (!(error instanceof StatusError) || error.status.code !== 401) throw error;
        refusal ??= error;
      }
    }
    if (refusal !== undefined) throw refusal;
    if (bearerToken(credentials.authorization) !== undefined) throw unauthorized();
    return anonymous?.(credentials);
  };
}

/** One value for each user, since users are looked up by identity further on and most come again. */
const joined = new WeakMap<UserInfo, UserInfo>();

/** The user as a member of `system:authenticated`. */
export function authenticated(user: UserInfo): UserInfo {
  if (user.groups.includes(AUTHENTICATED) || user.groups.includes(UNAUTHENTICATED)) return user;
  let known = joined.get(user);
  if (known === undefined) {
    known = { ...user, groups: [...user.groups, AUTHENTICATED] };
    joined.set(user, known);
  }
  return known;
}
