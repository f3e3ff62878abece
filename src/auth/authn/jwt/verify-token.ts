/** Verifies ID tokens: signature, audience and validity. */
import { TimeSlice } from "../../../std/async/time-slice.ts";
import { isSignedBy, type Jws, parseJws } from "../../service-account/jws.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { CompiledIssuer } from "./compile-issuer.ts";
import type { IssuerKey } from "./issuer-documents.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { Claims } from "./user-of-claims.ts";

/** Clock skew for nbf, as in the library that Kubernetes uses. */
const NOT_BEFORE_LEEWAY_SECONDS = 300;

/** The issuer in the unverified payload; undefined if the text is not a JWT. */
export function unverifiedIssuer(text: string): string | undefined {
  const [, body = "", tail] = text.split(".", 4);
  if (tail === undefined) return undefined;
  try {
    const payload: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    const { iss } = (payload ?? {}) as { readonly iss?: unknown };
    return typeof iss === "string" ? iss : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the claims of a valid token. `now` is in seconds since 1970. Rejects with an `InvalidCredentialsError`. */
export async function verifyToken(
  text: string,
  { audiences, algorithms }: Pick<CompiledIssuer, "audiences" | "algorithms">,
  keys: IssuerKeys,
  now: number,
): Promise<Claims> {
  const jws = parseJws(text, algorithms);
  if (jws === undefined) throw newError("it is malformed, or signed with an algorithm that is not allowed");
  checkClaims(jws, audiences, now);
  await checkSignature(keys, jws);
  return jws.payload;
}

function checkClaims({ payload }: Jws, audiences: readonly string[], now: number): void {
  const { aud, exp, nbf } = payload;
  const tokenAudiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!tokenAudiences.some((audience) => typeof audience === "string" && audiences.includes(audience))) {
    throw newError(`expected audience in ${JSON.stringify(audiences)} got ${JSON.stringify(tokenAudiences)}`);
  }
  if (typeof exp !== "number" || exp <= now) throw newError("token is expired");
  if (nbf === undefined) return;
  if (typeof nbf !== "number" || now + NOT_BEFORE_LEEWAY_SECONDS < nbf)
    throw newError("the current time is before the nbf (not before) time");
}

async function checkSignature(keys: IssuerKeys, jws: Jws): Promise<void> {
  const tried = new Set<IssuerKey>();
  const slice = new TimeSlice();
  const verify = async (): Promise<boolean> => {
    const found = await keys.find(jws.keyId).catch((cause: unknown) => {
      throw new InvalidCredentialsError(`oidc: authenticator not initialized: ${(cause as Error).message}`, { cause });
    });
    // Every client can send a token without a key ID, and each of many keys may take milliseconds.
    for (const key of found) {
      if (tried.has(key)) continue;
      tried.add(key);
      if (slice.isOver) await slice.end();
      if (isSignedBy(jws, key.publicKey)) return true;
    }
    return false;
  };
  if (await verify()) return;
  // The issuer may have new keys with the same IDs, or keys without IDs.
  await keys.refresh();
  if (!(await verify())) throw newError("failed to verify signature: no matching keys");
}

function newError(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: verify token: ${why}`);
}
