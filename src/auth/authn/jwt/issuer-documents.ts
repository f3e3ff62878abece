/** The documents that an OpenID Connect issuer publishes: its discovery document and its JSON Web Key Set. */
import { createPublicKey, type KeyObject } from "node:crypto";
import * as z from "zod/mini";

export interface IssuerKey {
  readonly keyId: string;
  readonly publicKey: KeyObject;
}

const KEYS_MAX = 128;

const httpsUrl = z.string().check(z.refine((text) => URL.parse(text)?.protocol === "https:"));
const anyIssuer = z.object({ issuer: z.optional(z.unknown()) });
const discovery = z.object({ jwks_uri: httpsUrl });
const keySet = z.object({ keys: z.array(z.unknown()) });
const signingKey = z.object({
  kty: z.enum(["RSA", "EC"]),
  kid: z._default(z.string(), ""),
  use: z._default(z.literal("sig"), "sig"),
  n: z.optional(z.string()),
  e: z.optional(z.string()),
  crv: z.optional(z.string()),
  x: z.optional(z.string()),
  y: z.optional(z.string()),
});

/** The URL of the issuer's keys. Throws when the document is not that of the issuer. */
export function parseDiscovery(document: unknown, issuerUrl: string, discoveryUrl: string): string {
  const { issuer } = anyIssuer.safeParse(document).data ?? {};
  if (issuer !== issuerUrl) {
    const actual = JSON.stringify(issuer);
    throw new Error(
      `issuer did not match the issuer returned by provider, expected ${JSON.stringify(issuerUrl)} got ${actual}`,
    );
  }
  const parsed = discovery.safeParse(document);
  if (!parsed.success) throw new Error(`the document at ${discoveryUrl} has no https URL in jwks_uri`);
  return parsed.data.jwks_uri;
}

/** Keys of unsupported types are skipped. */
export function parseKeySet(document: unknown, url: string): readonly IssuerKey[] {
  const parsed = keySet.safeParse(document);
  if (!parsed.success) throw new Error(`${url} has no keys`);
  return parsed.data.keys.slice(0, KEYS_MAX).flatMap(parseKey);
}

function parseKey(value: unknown): readonly IssuerKey[] {
  const parsed = signingKey.safeParse(value);
  if (!parsed.success) return [];
  const { kid, use: _use, ...jwk } = parsed.data;
  try {
    return [{ keyId: kid, publicKey: createPublicKey({ key: jwk as object, format: "jwk" }) }];
  } catch {
    return [];
  }
}
