import { type Issued, payloadOf } from "./claims.ts";
import { signJws } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

/** Makes tokens of service accounts. */
export interface TokenIssuer {
  issue(claims: Omit<Issued, "issuer">): Promise<string>;
}

/** `key` is asked for when the first token is wanted. */
export function tokenIssuer(issuer: string, key: () => Promise<SigningKey>): TokenIssuer {
  return { issue: async (claims) => signJws(payloadOf({ ...claims, issuer }), await key()) };
}
