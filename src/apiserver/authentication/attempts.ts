/** Observes each authenticator by its name, for the explanation of a decision. */
import type { TokenAuthenticator } from "../../auth/authn/token/bearer-token.ts";
import type { Authenticator } from "../../auth/user.ts";

export interface AttemptObserver {
  requests(name: string, authenticator: Authenticator): Authenticator;
  tokens(name: string, authenticator: TokenAuthenticator): TokenAuthenticator;
}

/** The observer of a running server: it returns the authenticators unchanged. */
export const unobserved: AttemptObserver = {
  requests: (_name, authenticator) => authenticator,
  tokens: (_name, authenticator) => authenticator,
};
