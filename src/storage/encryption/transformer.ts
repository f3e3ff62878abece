/**
 * Transformers of stored values. The bytes are those of Kubernetes: `k8s:enc:PROVIDER:v1:KEY:` and the encrypted value,
 * so that a stock API server can read them with the same keys, and the other way round.
 */

export interface Transformed {
  readonly value: Uint8Array;
  /** The value is to be rewritten: it was not written with the first key of the first provider. */
  readonly isStale: boolean;
}

export interface Transformer {
  /** Empty for plain text. */
  readonly prefix: string;
  /** `key`: of the value in the store, which some providers authenticate. */
  encrypt(value: Uint8Array, key: string): Uint8Array;
  /** `value` is without the prefix. Throws Kubernetes' error for values that cannot be decrypted. */
  decrypt(value: Uint8Array, key: string): Transformed;
}

/** Encrypts with one key. */
export interface Cipher {
  encrypt(value: Uint8Array, key: string): Uint8Array;
  decrypt(value: Uint8Array, key: string): Uint8Array;
}

/** Of all encrypted values. */
const ENCRYPTED_PREFIX = "k8s:enc:";

/** Plain text. */
export const identity: Transformer = {
  prefix: "",
  encrypt: (value) => value,
  decrypt(value) {
    if (startsWith(value, ENCRYPTED_PREFIX)) throw new Error("identity transformer tried to read encrypted data");
    return { value, isStale: false };
  },
};

/** A provider with several keys: the first one encrypts. `missing`: the error for a key that is not among them. */
export function withKeys(
  prefix: string,
  keys: readonly { readonly name: string; readonly cipher: Cipher }[],
  missing: string,
): Transformer {
  const named = keys.map(({ name, cipher }) => ({ prefix: Buffer.from(`${name}:`), cipher }));
  const [first] = named;
  return {
    prefix,
    encrypt: (value, key) => Buffer.concat([first!.prefix, first!.cipher.encrypt(value, key)]),
    decrypt(value, key) {
      // Two keys may have one name.
      let failure: unknown;
      for (const [index, { prefix: name, cipher }] of named.entries()) {
        if (!startsWith(value, name)) continue;
        try {
          return { value: cipher.decrypt(value.subarray(name.length), key), isStale: index > 0 };
        } catch (error) {
          failure ??= error;
        }
      }
      throw failure ?? new Error(missing);
    },
  };
}

/** The providers of a resource: the first one encrypts, the one with the value's prefix decrypts. */
export function joinTransformers(transformers: readonly Transformer[]): Transformer {
  const [first] = transformers;
  const prefixed = transformers.map((transformer) => ({ transformer, prefix: Buffer.from(transformer.prefix) }));
  return {
    prefix: "",
    encrypt: (value, key) => Buffer.concat([Buffer.from(first!.prefix), first!.encrypt(value, key)]),
    decrypt(value, key) {
      let failure: unknown;
      for (const [index, { transformer, prefix }] of prefixed.entries()) {
        if (!startsWith(value, prefix)) continue;
        try {
          const result = transformer.decrypt(value.subarray(prefix.length), key);
          return { value: result.value, isStale: result.isStale || index > 0 };
        } catch (error) {
          // Plain text may come first, so that values are decrypted as they are rewritten.
          if (prefix.length > 0) failure ??= error;
        }
      }
      throw failure ?? new Error("no matching prefix found");
    },
  };
}

function startsWith(value: Uint8Array, prefix: string | Uint8Array): boolean {
  const bytes = typeof prefix === "string" ? Buffer.from(prefix) : prefix;
  return value.length >= bytes.length && Buffer.compare(value.subarray(0, bytes.length), bytes) === 0;
}
