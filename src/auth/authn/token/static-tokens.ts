import { randomBytes } from "node:crypto";
import type { UserInfo } from "../../user.ts";
import { BearerToken, type TokenAuthenticator } from "./bearer-token.ts";
import type { TokenRow } from "./token-file.ts";

/** Tokens known in advance: random ones for the process' own components, and those of a token file. */
export interface KnownTokens {
  readonly authenticate: TokenAuthenticator;
  /** Makes an unguessable token that stands for `user` as long as the process lives. */
  issue(user: UserInfo): string;
  /** Replaces all that came from a file. */
  setRows(rows: readonly TokenRow[]): void;
}

const TOKEN_BYTES = 32;

/** These tokens are for the server that knows them, whose names are `audiences`, and for nobody else. */
export function knownTokens(audiences: readonly string[]): KnownTokens {
  const issued = new Map<string, UserInfo>();
  let rows = new Map<string, UserInfo>();
  return {
    authenticate: (token, asked) => {
      const user = issued.get(token.digest) ?? rows.get(token.digest);
      if (user === undefined) return undefined;
      const shared = asked === audiences ? audiences : asked.filter((audience) => audiences.includes(audience));
      return shared.length === 0 ? undefined : { user, audiences: shared };
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
