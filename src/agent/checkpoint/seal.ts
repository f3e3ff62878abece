/** AES-256-GCM over a file's content with its name as additional data. Format: version byte, nonce, tag, ciphertext. */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

export const KEY_BYTES = 32;
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

export function seal(key: Uint8Array, name: string, plain: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(name));
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([Buffer.from([VERSION]), nonce, cipher.getAuthTag(), body]);
}

/** Throws when the content was modified, truncated, renamed or encrypted with another key. */
export function unseal(key: Uint8Array, name: string, sealed: Uint8Array): Buffer {
  if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION) throw new Error("unknown file format");
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(name)).setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
  } catch (cause) {
    throw new Error("authentication of the content failed", { cause });
  }
}
