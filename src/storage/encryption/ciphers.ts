/** The ciphers of local keys, with the layouts of Kubernetes. */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Cipher } from "./transformer.ts";

const AES_BLOCK_BYTES = 16;
const GCM_NONCE_BYTES = 12;
const GCM_TAG_BYTES = 16;
const SECRETBOX_NONCE_BYTES = 24;
const TAG = { authTagLength: GCM_TAG_BYTES };
const NOT_AUTHENTIC = "cipher: message authentication failed";
const TOO_SHORT = "the stored data was shorter than the required size";

/** A random nonce, the encrypted value and its tag; authenticates the key of the value in the store. */
export function aesGcm(secret: Buffer): Cipher {
  const algorithm = `aes-${secret.length * 8}-gcm` as "aes-256-gcm";
  return {
    encrypt(value, key) {
      const nonce = systemRandom.bytes(GCM_NONCE_BYTES);
      const cipher = createCipheriv(algorithm, secret, nonce, TAG).setAAD(Buffer.from(key));
      return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
    },
    decrypt(value, key) {
      if (value.length < GCM_NONCE_BYTES) throw new Error(TOO_SHORT);
      const tagAt = value.length - GCM_TAG_BYTES;
      // Node.js would accept a shorter tag, which is easier to forge.
      if (tagAt < GCM_NONCE_BYTES) throw new Error(NOT_AUTHENTIC);
      try {
        const decipher = createDecipheriv(algorithm, secret, value.subarray(0, GCM_NONCE_BYTES), TAG);
        decipher.setAAD(Buffer.from(key)).setAuthTag(value.subarray(tagAt));
        return Buffer.concat([decipher.update(value.subarray(GCM_NONCE_BYTES, tagAt)), decipher.final()]);
      } catch (cause) {
        throw new Error(NOT_AUTHENTIC, { cause });
      }
    },
  };
}

/** A random initialization vector and the padded value. */
export function aesCbc(secret: Buffer): Cipher {
  const algorithm = `aes-${secret.length * 8}-cbc`;
  return {
    encrypt(value) {
      const vector = systemRandom.bytes(AES_BLOCK_BYTES);
      const cipher = createCipheriv(algorithm, secret, vector);
      return Buffer.concat([vector, cipher.update(value), cipher.final()]);
    },
    decrypt(value) {
      if (value.length < AES_BLOCK_BYTES) throw new Error(TOO_SHORT);
      if (value.length % AES_BLOCK_BYTES !== 0) {
        throw new Error("the stored data is not a multiple of the block size");
      }
      const padded = value.subarray(AES_BLOCK_BYTES);
      if (padded.length === 0) throw new Error(NOT_PADDED);
      const decipher = createDecipheriv(algorithm, secret, value.subarray(0, AES_BLOCK_BYTES)).setAutoPadding(false);
      return withoutPadding(Buffer.concat([decipher.update(padded), decipher.final()]));
    },
  };
}

const NOT_PADDED = "invalid PKCS7 data (empty or not padded)";

/** Removes the padding of PKCS #7, with the errors of Kubernetes. */
function withoutPadding(value: Buffer): Buffer {
  const count = value.at(-1) ?? 0;
  if (count === 0 || count > value.length) throw new Error(NOT_PADDED);
  const end = value.length - count;
  if (value.subarray(end).some((byte) => byte !== count)) throw new Error("invalid padding on input");
  return value.subarray(0, end);
}

/** A random nonce, and the value in the `secretbox` of NaCl: XSalsa20 and Poly1305. */
export function secretbox(secret: Buffer): Cipher {
  return {
    encrypt(value) {
      const nonce = systemRandom.bytes(SECRETBOX_NONCE_BYTES);
      return Buffer.concat([nonce, xsalsa20poly1305(secret, nonce).encrypt(value)]);
    },
    decrypt(value) {
      if (value.length < SECRETBOX_NONCE_BYTES) throw new Error(TOO_SHORT);
      try {
        const nonce = value.subarray(0, SECRETBOX_NONCE_BYTES);
        return xsalsa20poly1305(secret, nonce).decrypt(value.subarray(SECRETBOX_NONCE_BYTES));
      } catch (cause) {
        // The text of Kubernetes.
        throw new Error("output array was not large enough for encryption", { cause });
      }
    },
  };
}
