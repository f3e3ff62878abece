import { randomBytes } from "node:crypto";
import type { UserInfo } from "../../user.ts";
import { BearerToken, type TokenAuthenticator } from "./bearer-token.ts";
import type { TokenRow } from "./token-file.ts";

/** Static tokens: random ones for the process' own components, and those of `--token-auth-file`. */
export interface StaticTokens {
  readonly authenticate: TokenAuthenticator;
  /** Creates a random token for `user`, valid as long as the process runs. */
  issue(user: UserInfo): string;
  /** Replaces the tokens of the file. */
  setRows(rows: readonly TokenRow[]): void;
}

const TOKEN_BYTES = 32;

/** `audiences`: those of this server, for which the tokens are valid. */
export function createStaticTokens(audiences: readonly string[]): StaticTokens {
  const issued = new Map<string, UserInfo>();
  let rows = new Map<string, UserInfo>();
  return {
    authenticate: (token, requested) => {
      const user = issued.get(token.digest) ?? rows.get(token.digest);
      if (user === undefined) return undefined;
      const matching =
        requested === audiences ? audiences : requested.filter((audience) => audiences.includes(audience));
      return matching.length === 0 ? undefined : { user, audiences: matching };
    },
    issue(user) {
      const token = randomBytes(TOKEN_BYTES).toString("base64url");
      issued.set(new BearerToken(token).digest, user);
      return token;
    },
    setRows(next) {
      rows = new Map(next.map(({ token, user }) => [new BearerToken(token).digest, user]));
    },
  };
}
