/**
 * Distributed claims (OpenID Connect Core 1.0, section 5.6.2): the token names an endpoint whose response is another
 * token with the claim. Issuers use them for users in many groups.
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
import { unverifiedIssuer, verifyToken } from "./verify-token.ts";

export interface DistributedClaimOptions extends Fetcher {
  /** The only claim that is resolved. */
  readonly claim: string;
  /** Tokens of endpoints must have the same audiences and algorithms. */
  readonly issuer: Pick<CompiledIssuer, "audiences" | "algorithms">;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** Bounds the issuers whose keys are cached. Verified tokens name them, so they are few. */
const ISSUERS_MAX = 64;

export class DistributedClaimResolver {
  readonly #options: DistributedClaimOptions;
  readonly #keys = new Map<string, IssuerKeys>();

  constructor(options: DistributedClaimOptions) {
    this.#options = options;
  }

  /**
   * Returns the claims of a verified token, with the distributed claim if it has one. Rejects with an
   * `InvalidCredentialsError`.
   */
  async expand(claims: Claims): Promise<Claims> {
    const { claim } = this.#options;
    const endpoint = findEndpoint(claims, claim);
    if (endpoint === undefined) return claims;
    const found = await this.#fetchClaims(endpoint);
    if (!Object.hasOwn(found, claim)) {
      throw newError(`jwt returned by distributed claim endpoint ${endpoint.url} did not contain claim: ${claim}`);
    }
    return { ...claims, [claim]: found[claim] };
  }

  async #fetchClaims({ url: endpoint, bearer }: Endpoint): Promise<Claims> {
    const { issuer, fetchText, clock, claim } = this.#options;
    const text = await fetchText(endpoint, bearer).catch((cause: unknown) => {
      throw newError(`while getting distributed claim ${JSON.stringify(claim)}: ${(cause as Error).message}`);
    });
    const token = text.trim();
    const url = unverifiedIssuer(token);
    if (url === undefined || URL.parse(url)?.protocol !== "https:") {
      throw newError(`the response of ${endpoint} is not a JWT of an issuer at an https URL`);
    }
    return await verifyToken(token, issuer, this.#keysOf(url), clock.now() / 1000);
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

/** Undefined if the token has the claim, or no source for it. */
function findEndpoint(claims: Claims, claim: string): Endpoint | undefined {
  const { _claim_names: names, _claim_sources: sources } = claims;
  if (Object.hasOwn(claims, claim) || names === undefined) return undefined;
  const byClaim = parseMembers(names, (value) => typeof value === "string");
  if (byClaim === undefined) throw newError("error parsing distributed claim names");
  if (sources === undefined) throw newError("no claim sources");
  const bySource = parseMembers(sources, (value) => parseMembers(value, () => true) !== undefined);
  if (bySource === undefined) throw newError("could not parse claim sources");
  const source = byClaim.get(claim) as string | undefined;
  if (source === undefined) return undefined;
  const found = bySource.get(source) as { readonly endpoint?: unknown; readonly access_token?: unknown } | undefined;
  if (found === undefined) {
    throw newError(`id token _claim_names contained a source ${source} missing in _claims_sources`);
  }
  const { endpoint = "", access_token: bearer = "" } = found;
  if (typeof endpoint !== "string" || typeof bearer !== "string") throw newError("could not parse claim sources");
  // A source without endpoint is an aggregated claim, which Kubernetes does not support.
  return endpoint === "" ? undefined : { url: endpoint, bearer: bearer === "" ? undefined : bearer };
}

function parseMembers(value: unknown, isGood: (member: unknown) => boolean): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const members = new Map(Object.entries(value));
  return [...members.values()].every(isGood) ? members : undefined;
}

function newError(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: could not expand distributed claims: ${why}`);
}
