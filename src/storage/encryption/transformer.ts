/**
 * Transformers of stored values. The bytes are those of Kubernetes: `k8s:enc:PROVIDER:VERSION:KEY:` and the encrypted
 * value, so that a stock API server can read them with the same keys, and the other way round.
 */
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { ObserveTransformation } from "./encryption-metrics.ts";

export interface Transformed {
  readonly value: Uint8Array;
  /** The value is to be rewritten: it was not written with the first key of the first provider. */
  readonly isStale: boolean;
  /** Whether decrypting the value again may need a plugin. */
  readonly isPinned?: boolean;
}

/** Promises are of providers whose keys are in a plugin. */
export interface Transformer {
  /** All keys are in the configuration: what this transformer encrypted does not become stale. */
  readonly isLocal?: boolean;
  /** `key`: of the value in the store, which some providers authenticate. */
  encrypt(value: Uint8Array, key: string): MaybePromise<Uint8Array>;
  /** Throws Kubernetes' error for values that cannot be decrypted. */
  decrypt(value: Uint8Array, key: string): MaybePromise<Transformed>;
}

/** A transformer of the values with a prefix. */
export interface PrefixedTransformer {
  /** Empty for plain text. */
  readonly prefix: string;
  /** Its values are without the prefix. */
  readonly transformer: Transformer;
}

/** Encrypts with one key. */
export interface Cipher {
  encrypt(value: Uint8Array, key: string): Uint8Array;
  decrypt(value: Uint8Array, key: string): Uint8Array;
}

/** The prefix of all encrypted values. */
export const ENCRYPTED_PREFIX = "k8s:enc:";

/** Plain text. */
export const identity: PrefixedTransformer = {
  prefix: "",
  transformer: {
    isLocal: true,
    encrypt: (value) => value,
    decrypt(value) {
      if (isEncryptedValue(value)) throw new Error(READ_ENCRYPTED);
      return { value, isStale: false };
    },
  },
};

const ENCRYPTED = Buffer.from(ENCRYPTED_PREFIX);

/** The error for an encrypted value where plain text is expected. */
export const READ_ENCRYPTED = "identity transformer tried to read encrypted data";

export function isEncryptedValue(value: Uint8Array): boolean {
  return startsWith(value, ENCRYPTED);
}

export function cipherTransformer(cipher: Cipher): Transformer {
  return {
    isLocal: true,
    encrypt: (value, key) => cipher.encrypt(value, key),
    decrypt: (value, key) => ({ value: cipher.decrypt(value, key), isStale: false }),
  };
}

/**
 * The first transformer encrypts; those with the value's prefix decrypt, in their order, until one succeeds. `missing`:
 * the error for a value of no prefix.
 */
export function joinTransformers(
  transformers: readonly PrefixedTransformer[],
  missing: string,
  observe: ObserveTransformation | undefined,
): Transformer {
  const rows = transformers.map(({ prefix, transformer }) => ({ prefix, bytes: Buffer.from(prefix), transformer }));
  const first = rows[0]!;
  const decryptFrom = (start: number, value: Uint8Array, key: string, failures: Error[]): MaybePromise<Transformed> => {
    for (let index = start; index < rows.length; index++) {
      const { bytes, prefix, transformer } = rows[index]!;
      if (!startsWith(value, bytes)) continue;
      const began = observe?.start() ?? 0;
      const succeed = (result: Transformed): Transformed => {
        observe?.end("from_storage", prefix === "" ? "identity" : prefix, began);
        return index > 0 && !result.isStale ? { ...result, isStale: true } : result;
      };
      const fail = (error: unknown): void => {
        // Plain text may come first, so that values are decrypted as they are rewritten.
        if (prefix === "") return;
        observe?.end("from_storage", prefix, began, error);
        failures.push(error as Error);
      };
      try {
        const result = transformer.decrypt(bytes.length === 0 ? value : value.subarray(bytes.length), key);
        if (!(result instanceof Promise)) return succeed(result);
        return result.then(succeed, (error: unknown) => {
          fail(error);
          return decryptFrom(index + 1, value, key, failures);
        });
      } catch (error) {
        fail(error);
      }
    }
    if (failures.length > 0) {
      throw new Error(aggregateErrors(failures.map(({ message }) => message)), { cause: failures[0] });
    }
    const error = new Error(missing);
    observe?.end("from_storage", "unknown", observe.start(), error);
    throw error;
  };
  return {
    isLocal: transformers.every(({ transformer }) => transformer.isLocal === true),
    decrypt: (value, key) => decryptFrom(0, value, key, []),
    encrypt(value, key) {
      const began = observe?.start() ?? 0;
      const finish = (encrypted: Uint8Array): Uint8Array => {
        observe?.end("to_storage", first.prefix, began);
        return first.bytes.length === 0 ? encrypted : Buffer.concat([first.bytes, encrypted]);
      };
      try {
        const encrypted = first.transformer.encrypt(value, key);
        if (!(encrypted instanceof Promise)) return finish(encrypted);
        return encrypted.then(finish, (error: unknown) => {
          observe?.end("to_storage", first.prefix, began, error);
          throw error;
        });
      } catch (error) {
        observe?.end("to_storage", first.prefix, began, error);
        throw error;
      }
    },
  };
}

/** Formats several errors as Kubernetes does: one alone, several in brackets, none twice. */
export function aggregateErrors(messages: readonly string[]): string {
  const [first = "", ...more] = new Set(messages);
  return more.length === 0 ? first : `[${[first, ...more].join(", ")}]`;
}

/** Tries `other` when the first transformer cannot decrypt a value, which is then stale. */
export function withFallback(first: Transformer, other: Transformer): Transformer {
  return {
    encrypt: (value, key) => first.encrypt(value, key),
    decrypt(value, key) {
      try {
        return first.decrypt(value, key);
      } catch (error) {
        try {
          return andThen(other.decrypt(value, key), (result) => ({ ...result, isStale: true }));
        } catch (second) {
          throw new Error(aggregateErrors([(error as Error).message, (second as Error).message]), { cause: error });
        }
      }
    },
  };
}

function startsWith(value: Uint8Array, prefix: Uint8Array): boolean {
  return value.length >= prefix.length && Buffer.compare(value.subarray(0, prefix.length), prefix) === 0;
}
