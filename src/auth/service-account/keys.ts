/** The keys that tokens of service accounts are signed and verified with: PEM files, or a key of the server's own. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { chmod, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { writeFileDurably } from "../pki/key-pair.ts";
import { type Algorithm, algorithmOf } from "./jws.ts";

export interface VerificationKey {
  /** As Kubernetes names it: the SHA-256 of the key's DER form. */
  readonly keyId: string;
  readonly algorithm: Algorithm;
  readonly publicKey: KeyObject;
}

export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject;
}

const BLOCK = /-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g;
/** What every consumer of tokens knows; a stranger's verifier need not know curves. */
const OWN_KEY_BITS = 2048;

/** All keys of a file: public and private ones, certificates. Throws, naming the file, when it has none to use. */
export function readVerificationKeys(path: string, pem: string): readonly VerificationKey[] {
  const keys: VerificationKey[] = [];
  for (const [block] of pem.matchAll(BLOCK)) {
    const key = readKey(block, createPublicKey);
    const algorithm = key === undefined ? undefined : algorithmOf(key);
    if (key !== undefined && algorithm !== undefined) keys.push({ keyId: idOf(key), algorithm, publicKey: key });
  }
  if (keys.length === 0) throw new Error(`Cannot use ${path}: it holds no RSA or ECDSA key in PEM form`);
  return keys;
}

/** Throws, naming the file. */
export function readSigningKey(path: string, pem: string): SigningKey {
  for (const [block] of pem.matchAll(BLOCK)) {
    const privateKey = readKey(block, createPrivateKey);
    if (privateKey === undefined) continue;
    const publicKey = createPublicKey(privateKey);
    const algorithm = algorithmOf(publicKey);
    if (algorithm !== undefined) return { keyId: idOf(publicKey), algorithm, publicKey, privateKey };
  }
  throw new Error(`Cannot use ${path}: it holds no private RSA or ECDSA key in PEM form`);
}

/** The key in the file, which is made and written with the first call. Without a path it ends with the process. */
export async function ownSigningKey(path: string | undefined): Promise<SigningKey> {
  const kept = path === undefined ? undefined : await readIfPresent(path);
  if (path !== undefined && kept !== undefined) {
    // Whoever can read it can be anybody.
    await chmod(path, 0o600);
    return readSigningKey(path, kept);
  }
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: OWN_KEY_BITS });
  const pem = privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  if (path !== undefined) await writeFileDurably(path, pem, 0o600);
  return readSigningKey(path ?? "a generated key", pem);
}

/** As RFC 7517 has keys. */
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

function idOf(key: KeyObject): string {
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
