import type { Authenticator, UserInfo } from "../user.ts";

/** Bearer tokens known in advance: random ones for the process' own components, and those of a token file. */
export interface TokenAuthenticator {
  readonly authenticate: Authenticator;
  /** Makes an unguessable token that stands for `user` until it is revoked. */
  issue(user: UserInfo): string;
  /** Adds a token from elsewhere. */
  add(token: string, user: UserInfo): void;
  revoke(token: string): void;
}

export declare function tokenAuthenticator(): TokenAuthenticator;

/** The token of an `Authorization: Bearer …` header. */
export declare function bearerToken(authorization: string | undefined): string | undefined;
