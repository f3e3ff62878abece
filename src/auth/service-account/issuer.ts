import { createPayload, type TokenClaims } from "./claims.ts";
import { signJws } from "./jws.ts";
import type { SigningKey } from "./keys.ts";

/** Issues service account tokens. */
export interface TokenIssuer {
  issue(claims: Omit<TokenClaims, "issuer">): Promise<string>;
}

/** `key` is called for each token. */
export function createTokenIssuer(issuer: string, getKey: () => Promise<SigningKey>): TokenIssuer {
  return { issue: async (claims) => signJws(createPayload({ ...claims, issuer }), await getKey()) };
}
