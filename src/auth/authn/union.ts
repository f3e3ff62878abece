import { andThen } from "../../std/async/maybe-promise.ts";
import { AUTHENTICATED, type Authenticator, UNAUTHENTICATED, type UserInfo } from "../user.ts";
import { firstResult, InvalidCredentialsError } from "./invalid-credentials-error.ts";
import { bearerToken } from "./token/bearer-token.ts";

/**
 * Calls the authenticators in order and returns the first user, in the group `system:authenticated`. Invalid
 * credentials, and bearer tokens that no authenticator accepts, are an error and never an anonymous user.
 */
export function unionAuthenticator(authenticators: readonly Authenticator[], anonymous?: Authenticator): Authenticator {
  return (credentials) => {
    const found = firstResult(authenticators, (authenticate) => authenticate(credentials));
    return andThen(found, (user) => {
      if (user !== undefined) return asAuthenticated(user);
      if (bearerToken(credentials.authorization) !== undefined)
        throw new InvalidCredentialsError("invalid bearer token");
      return anonymous?.(credentials);
    });
  };
}

/** One value for each user: later stages cache by identity. */
const withGroup = new WeakMap<UserInfo, UserInfo>();

/** The user as a member of `system:authenticated`. */
export function asAuthenticated(user: UserInfo): UserInfo {
  let result = withGroup.get(user);
  if (result === undefined) {
    const { groups } = user;
    const hasGroup = groups.includes(AUTHENTICATED) || groups.includes(UNAUTHENTICATED);
    result = hasGroup ? user : { ...user, groups: [...groups, AUTHENTICATED] };
    withGroup.set(user, result);
  }
  return result;
}
