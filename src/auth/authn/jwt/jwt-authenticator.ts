/** Authenticates ID tokens of an OpenID Connect issuer. */

import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { TokenAuthenticator } from "../token/bearer-token.ts";
import type { CompiledIssuer } from "./compile-issuer.ts";
import { DistributedClaimResolver } from "./distributed-claims.ts";
import type { Fetcher } from "./fetcher.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { userFromClaims } from "./user-of-claims.ts";
import { unverifiedIssuer, verifyToken } from "./verify-token.ts";

/** The fetcher trusts the issuer's certificate authority. */
export interface JwtAuthenticatorOptions extends Fetcher {
  readonly issuer: CompiledIssuer;
  /** The audiences of this server; requests must include one of them. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Called for each token of the issuer. */
  readonly observe?: ((result: "success" | "failure", milliseconds: number) => void) | undefined;
}

export function jwtAuthenticator(options: JwtAuthenticatorOptions): TokenAuthenticator {
  const { issuer, audiences, fetchJson, fetchText, clock, random, observe } = options;
  const { url: issuerUrl, discoveryUrl } = issuer;
  const keys = new IssuerKeys({ issuerUrl, discoveryUrl, fetch: fetchJson, clock, random });
  const resolverOptions = { issuer, fetchText, fetchJson, clock, random };
  const groupsResolver =
    issuer.groups !== undefined && "claim" in issuer.groups
      ? new DistributedClaimResolver({ ...resolverOptions, claim: issuer.groups.claim })
      : undefined;
  return async ({ text }, requested) => {
    const matching = requested.filter((audience) => audiences.includes(audience));
    if (matching.length === 0 || unverifiedIssuer(text) !== issuerUrl) return undefined;
    const start = clock.monotonic();
    let result: "success" | "failure" = "failure";
    try {
      const claims = await verifyToken(text, issuer, keys, clock.now() / 1000);
      const user = userFromClaims(issuer, (await groupsResolver?.expand(claims)) ?? claims);
      result = "success";
      return { user, audiences: matching };
    } finally {
      observe?.(result, clock.monotonic() - start);
    }
  };
}
