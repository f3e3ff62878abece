/** JSON Web Signatures in compact serialization (RFC 7515), with the algorithms that Kubernetes supports. */
import { constants, type KeyObject, sign, verify } from "node:crypto";

/** The type and hash of the key that each algorithm requires; a token cannot select another type of key. */
const ALGORITHMS = {
  RS256: { type: "rsa", hash: "sha256" },
  RS384: { type: "rsa", hash: "sha384" },
  RS512: { type: "rsa", hash: "sha512" },
  ES256: { type: "ec", hash: "sha256", curve: "prime256v1" },
  ES384: { type: "ec", hash: "sha384", curve: "secp384r1" },
  ES512: { type: "ec", hash: "sha512", curve: "secp521r1" },
  PS256: { type: "rsa", hash: "sha256", pss: true },
  PS384: { type: "rsa", hash: "sha384", pss: true },
  PS512: { type: "rsa", hash: "sha512", pss: true },
} as const;
export type Algorithm = keyof typeof ALGORITHMS;

/** The algorithms of service account tokens. */
export const ACCOUNT_ALGORITHMS: readonly Algorithm[] = ["RS256", "ES256", "ES384", "ES512"];

/** The algorithm for each type of key. */
const PREFERRED = ["RS256", "ES256", "ES384", "ES512"] as const satisfies readonly Algorithm[];

export interface Jws {
  readonly algorithm: Algorithm;
  /** Empty if the token has none. */
  readonly keyId: string;
  /** Unverified until `isSignedBy` succeeds. */
  readonly payload: Readonly<Record<string, unknown>>;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** The algorithm for signing with the key; undefined for unsupported keys. */
export function algorithmOf(key: KeyObject): Algorithm | undefined {
  return PREFERRED.find((algorithm) => matchesKey(algorithm, key));
}

export function signJws(
  payload: Readonly<Record<string, unknown>>,
  signing: { readonly algorithm: Algorithm; readonly keyId: string; readonly privateKey: KeyObject },
): string {
  const { algorithm, keyId, privateKey } = signing;
  const signed = `${encode({ alg: algorithm, kid: keyId })}.${encode(payload)}`;
  const { hash } = ALGORITHMS[algorithm];
  return `${signed}.${sign(hash, Buffer.from(signed), withFormat(algorithm, privateKey)).toString("base64url")}`;
}

/** Undefined for a malformed token, critical headers, or an algorithm that is not `allowed`. */
export function parseJws(text: string, allowed: readonly Algorithm[] = ACCOUNT_ALGORITHMS): Jws | undefined {
  const [, head = "", body = "", tail = ""] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(text) ?? [];
  const header = decode(head);
  const payload = decode(body);
  if (header === undefined || payload === undefined || header.crit !== undefined) return undefined;
  const { alg, kid = "" } = header;
  const algorithm = allowed.find((each) => each === alg);
  if (algorithm === undefined || typeof kid !== "string") return undefined;
  return {
    algorithm,
    keyId: kid,
    payload,
    signed: Buffer.from(`${head}.${body}`),
    signature: Buffer.from(tail, "base64url"),
  };
}

export function isSignedBy({ algorithm, signed, signature }: Jws, key: KeyObject): boolean {
  if (!matchesKey(algorithm, key)) return false;
  return verify(ALGORITHMS[algorithm].hash, signed, withFormat(algorithm, key), signature);
}

/** The key with the signature format of JWS: r and s concatenated for ECDSA, PSS padding for PS algorithms. */
function withFormat(algorithm: Algorithm, key: KeyObject) {
  if (!("pss" in ALGORITHMS[algorithm])) return { key, dsaEncoding: "ieee-p1363" } as const;
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
  return { key, padding, saltLength };
}

function matchesKey(algorithm: Algorithm, key: KeyObject): boolean {
  const requested = ALGORITHMS[algorithm];
  if (key.asymmetricKeyType !== requested.type) return false;
  return requested.type === "rsa" || key.asymmetricKeyDetails?.namedCurve === requested.curve;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function decode(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}
