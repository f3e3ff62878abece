/** Whether a token of an issuer is good: signed by the issuer, meant for us, and not over. */
import { isSignedBy, type Jws, parseJws } from "../../service-account/jws.ts";
import { InvalidCredentialsError } from "../invalid-credentials-error.ts";
import type { CompiledIssuer } from "./compile-issuer.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { Claims } from "./user-of-claims.ts";

/** Clocks differ: as much as the library that Kubernetes uses allows for. */
const EARLY_SECONDS = 300;

/** Whose the token says it is, which nobody has verified; undefined for what is none. */
export function issuerOf(text: string): string | undefined {
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

/** What the token says, `now` being seconds since 1970. Rejects with a `Refusal`. */
export async function verifiedClaims(
  text: string,
  { audiences, algorithms }: Pick<CompiledIssuer, "audiences" | "algorithms">,
  keys: IssuerKeys,
  now: number,
): Promise<Claims> {
  const jws = parseJws(text, algorithms);
  if (jws === undefined) throw refused("it is malformed, or signed with an algorithm that is not allowed");
  checkClaims(jws, audiences, now);
  await checkSignature(keys, jws);
  return jws.payload;
}

function checkClaims({ payload }: Jws, audiences: readonly string[], now: number): void {
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
      throw new InvalidCredentialsError(`oidc: authenticator not initialized: ${(cause as Error).message}`, { cause });
    }
  };
  if (await find()) return;
  // The issuer may have new keys under old names, or keys without names.
  await keys.refresh();
  if (!(await find())) throw refused("failed to verify signature: no matching keys");
}

function refused(why: string): InvalidCredentialsError {
  return new InvalidCredentialsError(`oidc: verify token: ${why}`);
}
