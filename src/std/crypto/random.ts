/** Randomness as a parameter, so that a seed replays a failure. */
import { randomBytes, randomInt } from "node:crypto";

export interface RandomSource {
  /** `count` bytes, unpredictable when the source is the system's. */
  bytes(count: number): Uint8Array;
  /** A number n with 0 <= n < 1; for jitter and sampling. */
  fraction(): number;
  /** A version 4 UUID; absent: made of `bytes`. */
  uuid?(): string;
}

/** Each system call costs microseconds, whatever its size; a request needs 16 bytes. */
const POOL_BYTES = 4096;
let pool: Buffer = Buffer.alloc(0);

/** Bytes that are returned are erased from the pool. */
function takePooledBytes(count: number): Uint8Array {
  if (count > POOL_BYTES / 8) return randomBytes(count);
  if (pool.length < count) pool = randomBytes(POOL_BYTES);
  const taken = Uint8Array.from(pool.subarray(0, count));
  pool.fill(0, 0, count);
  pool = pool.subarray(count);
  return taken;
}

const HEX_DIGITS = Buffer.from("0123456789abcdef");
/** Where the two digits of each byte are in a UUID. */
const UUID_OFFSETS: readonly number[] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const uuidText = Buffer.alloc(36, "-");

/** A version 4 UUID in one string: node:crypto joins it of 20 strings, which each request would allocate. */
function createUuid(): string {
  if (pool.length < UUID_OFFSETS.length) pool = randomBytes(POOL_BYTES);
  for (let index = 0; index < UUID_OFFSETS.length; index++) {
    const offset = UUID_OFFSETS[index]!;
    const byte = index === 6 ? (pool[6]! & 0x0f) | 0x40 : index === 8 ? (pool[8]! & 0x3f) | 0x80 : pool[index]!;
    uuidText[offset] = HEX_DIGITS[byte >> 4]!;
    uuidText[offset + 1] = HEX_DIGITS[byte & 0x0f]!;
    pool[index] = 0;
  }
  pool = pool.subarray(UUID_OFFSETS.length);
  return uuidText.toString("latin1");
}

export const systemRandom: RandomSource = {
  bytes: takePooledBytes,
  uuid: createUuid,
  fraction: () => randomInt(0x1_0000_0000) / 0x1_0000_0000,
};

/** Deterministic (mulberry32); for tests and simulations only. */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  return {
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
    fraction: () => next() / 0x1_0000_0000,
  };
}

/** A version 4 UUID. */
export function randomUuid(random: RandomSource): string {
  if (random.uuid !== undefined) return random.uuid();
  const bytes = Buffer.from(random.bytes(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Kubernetes' alphabet for generated names: no vowels (no words), no characters that look alike. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** `length` characters to append to a generateName or a pod template's name; Kubernetes uses 5. */
export function randomSuffix(random: RandomSource, length = 5): string {
  let text = "";
  while (text.length < length) {
    for (const byte of random.bytes(length)) {
      // 243 = 9 * 27: bytes above it would favour the first letters.
      if (byte < 243 && text.length < length) text += SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length];
    }
  }
  return text;
}
