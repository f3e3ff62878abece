/** AES-GCM with a key of its own for each value, which HKDF derives from a seed (KDF of KMS v2). */
import { createHmac } from "node:crypto";
import { systemRandom } from "../../../std/crypto/random.ts";
import { aesGcm } from "../ciphers.ts";
import type { Cipher } from "../transformer.ts";

export const SEED_BYTES_MIN = 32;
const INFO_BYTES = 32;
/** The counter of the first block of HKDF's output; one block of SHA-256 is the key. */
const FIRST_BLOCK = Buffer.of(1);

/** The random `info` of HKDF, and AES-GCM's value. Throws for a short seed. */
export function extendedNonceGcm(seed: Uint8Array): Cipher {
  if (seed.length < SEED_BYTES_MIN) throw new Error(`invalid seed length ${seed.length} used for key generation`);
  const cipherOf = (info: Uint8Array): Cipher =>
    aesGcm(createHmac("sha256", seed).update(info).update(FIRST_BLOCK).digest());
  return {
    encrypt(value, key) {
      const info = systemRandom.bytes(INFO_BYTES);
      return Buffer.concat([info, cipherOf(info).encrypt(value, key)]);
    },
    decrypt(value, key) {
      if (value.length < INFO_BYTES) throw new Error("the stored data was shorter than the required size");
      return cipherOf(value.subarray(0, INFO_BYTES)).decrypt(value.subarray(INFO_BYTES), key);
    },
  };
}
