import { andThen } from "../../std/async/maybe-promise.ts";
import { AUTHENTICATED, type Authenticator, UNAUTHENTICATED, type UserInfo } from "../user.ts";
import { firstFound, Refusal } from "./invalid-credentials-error.ts";
import { bearerToken } from "./token/bearer-token.ts";

/**
 * Asks in order and takes the first user; whoever is known joins `system:authenticated`. Credentials that are bad, or
 * that nobody knows, fail when no other authenticator finds a user; they never make an anonymous one.
 */
export function unionAuthenticator(authenticators: readonly Authenticator[], anonymous?: Authenticator): Authenticator {
  return (credentials) => {
    const found = firstFound(authenticators, (authenticate) => authenticate(credentials));
    return andThen(found, (user) => {
      if (user !== undefined) return authenticated(user);
      if (bearerToken(credentials.authorization) !== undefined) throw new Refusal("invalid bearer token");
      return anonymous?.(credentials);
    });
  };
}

/** One value for each user, since users are looked up by identity further on and most come again. */
const joined = new WeakMap<UserInfo, UserInfo>();

/** The user as a member of `system:authenticated`. */
export function authenticated(user: UserInfo): UserInfo {
  let known = joined.get(user);
  if (known === undefined) {
    const { groups } = user;
    const isSaid = groups.includes(AUTHENTICATED) || groups.includes(UNAUTHENTICATED);
    known = isSaid ? user : { ...user, groups: [...groups, AUTHENTICATED] };
    joined.set(user, known);
  }
  return known;
}
