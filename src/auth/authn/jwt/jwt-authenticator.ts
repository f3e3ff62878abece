/** Identity tokens of an OpenID Connect issuer. */
import type { Clock } from "../../../std/clock.ts";
import type { RandomSource } from "../../../std/random.ts";
import { isSignedBy, type Jws, parseJws } from "../../service-account/jws.ts";
import { Refusal } from "../refusal.ts";
import type { TokenAuthenticator } from "../token.ts";
import type { CompiledIssuer } from "./compile-issuer.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { userOfClaims } from "./user-of-claims.ts";

export interface JwtOptions {
  readonly issuer: CompiledIssuer;
  /** Whom this server is: what is asked of it is asked of the issuer's tokens too. */
  readonly audiences: readonly string[];
  /** The JSON at a URL, read with trust in the issuer's authority. */
  readonly fetch: (url: string) => Promise<unknown>;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Hears of every token of the issuer. */
  readonly observe?: ((result: "success" | "failure", milliseconds: number) => void) | undefined;
}

/** Clocks differ: as much as the library that Kubernetes uses allows for. */
const EARLY_SECONDS = 300;

export function jwtAuthenticator(options: JwtOptions): TokenAuthenticator {
  const { issuer, audiences, fetch, clock, random, observe } = options;
  const { url: issuerUrl, discoveryUrl } = issuer;
  const keys = new IssuerKeys({ issuerUrl, discoveryUrl, fetch, clock, random });
  return async ({ text }, asked) => {
    const shared = asked.filter((audience) => audiences.includes(audience));
    if (shared.length === 0 || issuerOf(text) !== issuerUrl) return undefined;
    const began = clock.monotonic();
    let result: "success" | "failure" = "failure";
    try {
      const jws = parseJws(text, issuer.algorithms);
      if (jws === undefined) throw refused("it is malformed, or signed with an algorithm that is not allowed");
      checkClaims(issuer, jws, clock.now() / 1000);
      await checkSignature(keys, jws);
      const user = userOfClaims(issuer, jws.payload);
      result = "success";
      return { user, audiences: shared };
    } finally {
      observe?.(result, clock.monotonic() - began);
    }
  };
}

/** Whose the token says it is, which nobody has verified; undefined for what is none. */
function issuerOf(text: string): unknown {
  const [, body = "", tail] = text.split(".", 4);
  if (tail === undefined) return undefined;
  try {
    const payload: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    return typeof payload === "object" && payload !== null ? (payload as { readonly iss?: unknown }).iss : undefined;
  } catch {
    return undefined;
  }
}

function checkClaims({ audiences }: CompiledIssuer, { payload }: Jws, now: number): void {
  const { aud, exp, nbf } = payload;
  const meantFor: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!meantFor.some((audience) => typeof audience === "string" && audiences.includes(audience))) {
    throw refused(`expected audience in ${JSON.stringify(audiences)} got ${JSON.stringify(meantFor)}`);
  }
  if (typeof exp !== "number" || exp <= now) throw refused("token is expired");
  if (nbf === undefined) return;
  if (typeof nbf !== "number" || now + EARLY_SECONDS < nbf)
    throw refused("the current time is before the nbf (not before) time");
}

async function checkSignature(keys: IssuerKeys, jws: Jws): Promise<void> {
  const find = async (): Promise<boolean> => {
    try {
      return (await keys.find(jws.keyId)).some(({ publicKey }) => isSignedBy(jws, publicKey));
    } catch (cause) {
      throw new Refusal(`oidc: authenticator not initialized: ${(cause as Error).message}`, { cause });
    }
  };
  if (await find()) return;
  // The issuer may have new keys under old names, or keys without names.
  await keys.refresh();
  if (!(await find())) throw refused("failed to verify signature: no matching keys");
}

function refused(why: string): Refusal {
  return new Refusal(`oidc: verify token: ${why}`);
}
