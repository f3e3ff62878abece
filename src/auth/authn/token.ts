import { createHash, randomBytes } from "node:crypto";
import type { Authenticator, UserInfo } from "../user.ts";

/** Bearer tokens known in advance: random ones for the process' own components, and those of a token file. */
export interface TokenAuthenticator {
  readonly authenticate: Authenticator;
  /** Makes an unguessable token that stands for `user` until it is revoked. */
  issue(user: UserInfo): string;
  /** Adds a token from elsewhere. */
  add(token: string, user: UserInfo): void;
  revoke(token: string): void;
  /** Whom a token stands for. */
  find(token: string): UserInfo | undefined;
}

const TOKEN_BYTES = 32;

/** Tokens are looked up by their hash: how long that takes tells nothing of the tokens there are. */
export function tokenAuthenticator(): TokenAuthenticator {
  const users = new Map<string, UserInfo>();
  const add = (token: string, user: UserInfo): void => void users.set(hash(token), user);
  const find = (token: string): UserInfo | undefined => users.get(hash(token));
  return {
    authenticate: async ({ authorization }) => {
      const token = bearerToken(authorization);
      return token === undefined ? undefined : find(token);
    },
    issue(user) {
      const token = randomBytes(TOKEN_BYTES).toString("base64url");
      add(token, user);
      return token;
    },
    add,
    find,
    revoke: (token) => void users.delete(hash(token)),
  };
}

/** The token of an `Authorization: Bearer …` header; undefined when it is another scheme or there is no token. */
export function bearerToken(authorization: string | undefined): string | undefined {
  // What follows the token is ignored, and a second space is an empty token, as in Kubernetes.
  return authorization === undefined ? undefined : /^bearer ([^ ]+)/i.exec(authorization.trim())?.[1];
}

function hash(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
