/**
 * A claim that the token does not hold itself: it names a place where another token is that does (OpenID Connect Core
 * 1.0, section 5.6.2), as issuers do whose users are in many groups.
 *
 *     "_claim_names": { "groups": "src1" },
 *     "_claim_sources": { "src1": { "endpoint": "https://groups.example.com/jo", "access_token": "…" } }
 */

import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import { type CompiledIssuer, discoveryUrlOf } from "./compile-issuer.ts";
import type { Fetcher } from "./fetcher.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { Claims } from "./user-of-claims.ts";
import { issuerOf, verifiedClaims } from "./verify-token.ts";

export interface DistributedClaimOptions extends Fetcher {
  /** The one claim that is looked for elsewhere. */
  readonly claim: string;
  /** Tokens from elsewhere are meant for the same audiences, and signed with the same algorithms. */
  readonly issuer: Pick<CompiledIssuer, "audiences" | "algorithms">;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** Issuers whose keys are remembered: whoever is verified names them, so they are few. */
const ISSUERS_MAX = 64;

export class DistributedClaim {
  readonly #options: DistributedClaimOptions;
  readonly #keys = new Map<string, IssuerKeys>();

  constructor(options: DistributedClaimOptions) {
    this.#options = options;
  }

  /** The claims of a verified token, with the one that lies elsewhere where there is such. Rejects with a `Refusal`. */
  async expand(claims: Claims): Promise<Claims> {
    const { claim } = this.#options;
    const endpoint = endpointOf(claims, claim);
    if (endpoint === undefined) return claims;
    const found = await this.#claimsAt(endpoint);
    if (!Object.hasOwn(found, claim)) {
      throw refused(`jwt returned by distributed claim endpoint ${endpoint.url} did not contain claim: ${claim}`);
    }
    return { ...claims, [claim]: found[claim] };
  }

  async #claimsAt({ url: place, bearer }: Endpoint): Promise<Claims> {
    const { issuer, fetchText, clock, claim } = this.#options;
    const text = await fetchText(place, bearer).catch((cause: unknown) => {
      throw refused(`while getting distributed claim ${JSON.stringify(claim)}: ${(cause as Error).message}`);
    });
    const token = text.trim();
    const url = issuerOf(token);
    if (url === undefined || URL.parse(url)?.protocol !== "https:") {
      throw refused(`what ${place} answers is no token of an issuer at an https URL`);
    }
    return await verifiedClaims(token, issuer, this.#keysOf(url), clock.now() / 1000);
  }

  #keysOf(issuerUrl: string): IssuerKeys {
    const { fetchJson: fetch, clock, random } = this.#options;
    let keys = this.#keys.get(issuerUrl);
    if (keys === undefined) {
      if (this.#keys.size >= ISSUERS_MAX) this.#keys.clear();
      keys = new IssuerKeys({ issuerUrl, discoveryUrl: discoveryUrlOf(issuerUrl), fetch, clock, random });
      this.#keys.set(issuerUrl, keys);
    }
    return keys;
  }
}

interface Endpoint {
  readonly url: string;
  readonly bearer: string | undefined;
}

/** Undefined where the claim is there, or nowhere. */
function endpointOf(claims: Claims, claim: string): Endpoint | undefined {
  const { _claim_names: names, _claim_sources: sources } = claims;
  if (Object.hasOwn(claims, claim) || names === undefined) return undefined;
  const byClaim = membersOf(names, (value) => typeof value === "string");
  if (byClaim === undefined) throw refused("error parsing distributed claim names");
  if (sources === undefined) throw refused("no claim sources");
  const bySource = membersOf(sources, (value) => membersOf(value, () => true) !== undefined);
  if (bySource === undefined) throw refused("could not parse claim sources");
  const source = byClaim.get(claim) as string | undefined;
  if (source === undefined) return undefined;
  const found = bySource.get(source) as { readonly endpoint?: unknown; readonly access_token?: unknown } | undefined;
  if (found === undefined) {
    throw refused(`id token _claim_names contained a source ${source} missing in _claims_sources`);
  }
  const { endpoint = "", access_token: bearer = "" } = found;
  if (typeof endpoint !== "string" || typeof bearer !== "string") throw refused("could not parse claim sources");
  // One without a place has the claim in a token of its own, which Kubernetes does not look into.
  return endpoint === "" ? undefined : { url: endpoint, bearer: bearer === "" ? undefined : bearer };
}

function membersOf(value: unknown, isGood: (member: unknown) => boolean): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const members = new Map(Object.entries(value));
  return [...members.values()].every(isGood) ? members : undefined;
}

function refused(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: could not expand distributed claims: ${why}`);
}
