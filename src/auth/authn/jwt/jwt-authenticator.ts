/** Identity tokens of an OpenID Connect issuer. */
import type { Clock } from "../../../std/time/clock.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Fetcher } from "./fetcher.ts";
import type { TokenAuthenticator } from "../token/bearer-token.ts";
import type { CompiledIssuer } from "./compile-issuer.ts";
import { DistributedClaim } from "./distributed-claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { userOfClaims } from "./user-of-claims.ts";
import { issuerOf, verifiedClaims } from "./verify-token.ts";

/** What is fetched is read with trust in the issuer's authority. */
export interface JwtOptions extends Fetcher {
  readonly issuer: CompiledIssuer;
  /** Whom this server is: what is asked of it is asked of the issuer's tokens too. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Hears of every token of the issuer. */
  readonly observe?: ((result: "success" | "failure", milliseconds: number) => void) | undefined;
}

export function jwtAuthenticator(options: JwtOptions): TokenAuthenticator {
  const { issuer, audiences, fetchJson, fetchText, clock, random, observe } = options;
  const { url: issuerUrl, discoveryUrl } = issuer;
  const keys = new IssuerKeys({ issuerUrl, discoveryUrl, fetch: fetchJson, clock, random });
  const distributed = { issuer, fetchText, fetchJson, clock, random };
  const groups =
    issuer.groups !== undefined && "claim" in issuer.groups
      ? new DistributedClaim({ ...distributed, claim: issuer.groups.claim })
      : undefined;
  return async ({ text }, asked) => {
    const shared = asked.filter((audience) => audiences.includes(audience));
    if (shared.length === 0 || issuerOf(text) !== issuerUrl) return undefined;
    const began = clock.monotonic();
    let result: "success" | "failure" = "failure";
    try {
      const claims = await verifiedClaims(text, issuer, keys, clock.now() / 1000);
      const user = userOfClaims(issuer, (await groups?.expand(claims)) ?? claims);
      result = "success";
      return { user, audiences: shared };
    } finally {
      observe?.(result, clock.monotonic() - began);
    }
  };
}
