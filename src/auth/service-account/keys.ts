/** The keys of service account tokens: PEM files, or a generated key. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { chmod, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { writeFileDurably } from "../pki/key-pair.ts";
import { type Algorithm, algorithmOf } from "./jws.ts";

export interface VerificationKey {
  /** As in Kubernetes: the SHA-256 of the key's DER. */
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly publicKey: KeyObject;
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject;
}

const BLOCK = /-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g;
/** RSA, since not all verifiers support elliptic curves. */
const GENERATED_KEY_BITS = 2048;

/**
 * All keys of a file: public keys, private keys and certificates. Throws an error that names the file, if it has none.
 */
export function readVerificationKeys(path: string, pem: string): readonly VerificationKey[] {
  const keys: VerificationKey[] = [];
  for (const [block] of pem.matchAll(BLOCK)) {
    const key = readKey(block, createPublicKey);
    const algorithm = key === undefined ? undefined : algorithmOf(key);
    if (key !== undefined && algorithm !== undefined) keys.push({ keyId: keyIdOf(key), algorithm, publicKey: key });
  }
  if (keys.length === 0) throw new Error(`Cannot use ${path}: it has no RSA or ECDSA key in PEM`);
  return keys;
}

/** Throws an error that names the file. */
export function readSigningKey(path: string, pem: string): SigningKey {
  for (const [block] of pem.matchAll(BLOCK)) {
    const privateKey = readKey(block, createPrivateKey);
    if (privateKey === undefined) continue;
    const publicKey = createPublicKey(privateKey);
    const algorithm = algorithmOf(publicKey);
    if (algorithm !== undefined) return { keyId: keyIdOf(publicKey), algorithm, publicKey, privateKey };
  }
  throw new Error(`Cannot use ${path}: it has no private RSA or ECDSA key in PEM`);
}

/** The key in the file, which the first call generates. Without a path, a key for the lifetime of the process. */
export async function loadOrCreateSigningKey(path: string | undefined): Promise<SigningKey> {
  const stored = path === undefined ? undefined : await readIfPresent(path);
  if (path !== undefined && stored !== undefined) {
    // With this key, tokens of any account can be forged.
    await chmod(path, 0o600);
    return readSigningKey(path, stored);
  }
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: GENERATED_KEY_BITS });
  const pem = privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  if (path !== undefined) await writeFileDurably(path, pem, 0o600);
  return readSigningKey(path ?? "a generated key", pem);
}

/** The key as JWK (RFC 7517). */
export function jsonWebKey({ keyId, algorithm, publicKey }: VerificationKey): Readonly<Record<string, unknown>> {
  const { kty, ...members } = publicKey.export({ format: "jwk" });
  return { use: "sig", kty, kid: keyId, alg: algorithm, ...members };
}

function readKey(block: string, read: (pem: string) => KeyObject): KeyObject | undefined {
  try {
    return read(block);
  } catch {
    return undefined;
  }
}

function keyIdOf(key: KeyObject): string {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("base64url");
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
