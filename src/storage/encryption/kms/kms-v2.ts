/**
 * KMS v2: values are encrypted with keys that are derived from a seed. The plugin encrypts the seed, once for each key
 * ID that its status names; each value has the encrypted seed.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { Timer } from "../../../std/time/clock.ts";
import { aesGcm } from "../ciphers.ts";
import type { KmsConfiguration } from "../configuration-schema.ts";
import { aggregateErrors, type Cipher, type PrefixedTransformer, type Transformed } from "../transformer.ts";
import {
  checkEncryptedObject,
  checkKeyId,
  dataKeyText,
  decodeEncryptedObject,
  encodeEncryptedObject,
  keyIdHash,
} from "./encrypted-object.ts";
import { extendedNonceGcm, SEED_BYTES_MIN } from "./extended-nonce-gcm.ts";
import { CachedCheck, type KmsDeps, KmsPlugin, type KmsProvider, timeoutMsOf } from "./kms-provider.ts";
import { DEK_SOURCE, type EncryptedObject, type KmsV2Status, kmsV2 } from "./protocol.ts";

const PREFIX = "k8s:enc:kms:v2:";
const VERSIONS = ["v2", "v2beta1"];
/** The status is polled at these intervals. */
const POLL_MS = { healthy: 60_000, unhealthy: 10_000 };
/** How long after the start of the last successful check values are written. */
const WRITE_TTL_MS = 180_000;
/** Key IDs are few, and each start of a server adds a seed. */
const SEEDS_MAX = 4096;
const SEED_TTL_MS = 24 * 3_600_000;
/** What `checkEncryptedObject` requires of an object whose value does not exist yet. */
const ANY_DATA = new Uint8Array(1);

/** A seed with which values are written. */
interface WriteState {
  readonly cipher: Cipher;
  /** The envelope without an encrypted value. */
  readonly encrypted: EncryptedObject;
  readonly keyText: string;
  /** By the host's clock. */
  readonly expires: number;
}

export class KmsV2Provider implements KmsProvider {
  readonly prefixed: PrefixedTransformer;
  readonly checkMs: number;
  readonly #name: string;
  readonly #deps: KmsDeps;
  readonly #plugin: KmsPlugin;
  readonly #check: CachedCheck;
  /** By `dataKeyText`. */
  readonly #ciphers: ExpiringCache<Cipher>;
  /** Calls for seeds in progress: several values mostly have one seed. */
  readonly #decrypting = new Map<string, Promise<Cipher>>();
  #state: WriteState | undefined;
  /** The API version in the first status. */
  #version: string | undefined;
  #timer: Timer | undefined;
  #disposed = false;

  /** Resolves after the first check, also when that fails: the plugin may start later. */
  static async open(config: KmsConfiguration, deps: KmsDeps): Promise<KmsV2Provider> {
    const provider = new KmsV2Provider(config, deps);
    await provider.#poll();
    return provider;
  }

  private constructor(config: KmsConfiguration, deps: KmsDeps) {
    const { name = "" } = config;
    this.#name = name;
    this.#deps = deps;
    this.#plugin = new KmsPlugin(config, deps);
    this.checkMs = timeoutMsOf(config);
    this.#check = new CachedCheck(deps.clock, () => this.#checkStatus());
    this.#ciphers = new ExpiringCache(SEEDS_MAX, deps.clock);
    this.prefixed = {
      prefix: `${PREFIX}${name}:`,
      transformer: {
        encrypt: (value, key) => this.#encrypt(value, key),
        decrypt: (value, key) => this.#decrypt(value, key),
      },
    };
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#timer?.cancel();
    this.#plugin[Symbol.dispose]();
  }

  async check(): Promise<void> {
    await this.#check.run();
  }

  /** Keeps the key ID up to date, and the state from expiring. */
  async #poll(): Promise<void> {
    let delay = POLL_MS.healthy;
    try {
      await this.check();
    } catch (error) {
      delay = POLL_MS.unhealthy;
      if (!this.#disposed) {
        this.#deps.log.v(2)?.error("kms plugin failed health check probe", error, { name: this.#name });
      }
    }
    if (this.#disposed) return;
    this.#timer = this.#deps.clock.timer(delay, () => void this.#poll());
  }

  async #checkStatus(): Promise<void> {
    let status: KmsV2Status;
    try {
      status = await this.#plugin.call(kmsV2.status, {});
    } catch (cause) {
      const what = `failed to perform status section of the healthz check for KMS Provider ${this.#name}`;
      throw new Error(`${what}, error: ${(cause as Error).message}`, { cause });
    }
    const errors = [...this.#checkHealth(status), ...(await this.#checkKey(status))];
    if (errors.length > 0) {
      throw new Error(`kmsv2 Provider ${this.#name} is not healthy, error: ${aggregateErrors(errors)}`);
    }
  }

  #checkHealth({ healthz = "", version = "" }: KmsV2Status): readonly string[] {
    const errors = healthz === "ok" ? [] : [`got unexpected healthz status: ${healthz}`];
    if (!VERSIONS.includes(version)) return [...errors, `expected KMSv2 API version v2, got ${version}`];
    this.#version ??= version;
    if (this.#version === version) return errors;
    const why = "KMSv2 API version should not change after the initial status response version";
    return [...errors, `${why} ${this.#version}, got ${version}`];
  }

  async #checkKey({ keyId = "" }: KmsV2Status): Promise<readonly string[]> {
    const { metrics } = this.#deps;
    const invalid = checkKeyId(keyId);
    if (invalid !== undefined) {
      metrics?.recordInvalidKeyId(this.#name, invalid.code);
      return [`got invalid KMSv2 KeyID hash ${JSON.stringify(keyIdHash(keyId))}: ${invalid.message}`];
    }
    metrics?.recordStatusKeyId(this.#name, keyId);
    const problem = await this.#rotate(keyId);
    return problem === undefined ? [] : [problem];
  }

  /**
   * Extends the state while the key ID is the same, else replaces it by one with a new seed. When that fails, the state
   * stays in use until it expires.
   */
  async #rotate(keyId: string): Promise<string | undefined> {
    const { clock, log } = this.#deps;
    const state = this.#state;
    // The time of the call counts: this is the most that a state is used after the plugin named its key.
    const expires = clock.now() + WRITE_TTL_MS;
    if (state !== undefined && state.encrypted.keyID === keyId) {
      this.#state = { ...state, expires };
      return undefined;
    }
    const uid = randomUUID();
    let failure: unknown;
    let encryptKeyId = "";
    try {
      const created = await this.#createState(uid, expires);
      encryptKeyId = created.encrypted.keyID ?? "";
      if (encryptKeyId === keyId) {
        this.#state = created;
        log.v(6)?.info("successfully rotated DEK", { uid, newKeyIDHash: keyIdHash(keyId) });
        return undefined;
      }
    } catch (error) {
      failure = error;
    }
    const stateError = state === undefined ? "got unexpected nil transformer" : "<nil>";
    const error = failure === undefined ? "<nil>" : (failure as Error).message;
    const shown = (id: string | undefined): string => JSON.stringify(keyIdHash(id ?? ""));
    return (
      `failed to rotate DEK uid=${JSON.stringify(uid)}, useSeed=true, errState=${stateError}, errGen=${error}, ` +
      `statusKeyIDHash=${shown(keyId)}, encryptKeyIDHash=${shown(encryptKeyId)}, ` +
      `stateKeyIDHash=${shown(state?.encrypted.keyID)}, expirationTimestamp=${formatTime(state?.expires)}`
    );
  }

  async #createState(uid: string, expires: number): Promise<WriteState> {
    const { clock, metrics } = this.#deps;
    const start = clock.monotonic();
    const seed = randomBytes(SEED_BYTES_MIN);
    metrics?.recordDataKey(clock.monotonic() - start);
    const cipher = extendedNonceGcm(seed);
    const { ciphertext, keyId, annotations } = await this.#plugin
      .call(kmsV2.encrypt, { plaintext: seed, uid })
      .catch((cause: Error) => {
        throw new Error(`failed to encrypt DEK, error: ${cause.message}`, { cause });
      });
    const encrypted: EncryptedObject = {
      keyID: keyId,
      encryptedDEKSource: ciphertext,
      annotations,
      encryptedDEKSourceType: DEK_SOURCE.hkdfSha256ExtendedNonceSeed,
    };
    checkEncryptedObject({ ...encrypted, encryptedData: ANY_DATA });
    return { cipher, encrypted, keyText: dataKeyText(encrypted), expires };
  }

  #writableState(): WriteState {
    const state = this.#state;
    if (state === undefined) throw new Error("got unexpected nil transformer");
    const now = this.#deps.clock.now();
    if (now <= state.expires) return state;
    const hash = JSON.stringify(keyIdHash(state.encrypted.keyID ?? ""));
    const times = `expired at ${formatTime(state.expires)} (current time is ${formatTime(now)})`;
    throw new Error(`encryptedDEKSource with keyID hash ${hash} ${times}`);
  }

  #encrypt(value: Uint8Array, key: string): Uint8Array {
    const state = this.#writableState();
    // The value can be read without a call.
    this.#cache(state.keyText, state.cipher);
    const encryptedData = state.cipher.encrypt(value, key);
    this.#deps.metrics?.recordKeyId("to_storage", this.#name, state.encrypted.keyID ?? "");
    return encodeEncryptedObject({ ...state.encrypted, encryptedData });
  }

  #decrypt(value: Uint8Array, key: string): Transformed | Promise<Transformed> {
    const object = decodeEncryptedObject(value);
    if (this.#state === undefined) throw new Error("got unexpected nil transformer");
    const keyText = dataKeyText(object);
    const cipher = this.#ciphers.get(keyText);
    if (cipher !== undefined) return this.#decryptWith(cipher, object, key);
    this.#deps.metrics?.recordCacheMiss();
    let decrypting = this.#decrypting.get(keyText);
    if (decrypting === undefined) {
      decrypting = this.#readCipher(object, keyText).finally(() => this.#decrypting.delete(keyText));
      this.#decrypting.set(keyText, decrypting);
    }
    return decrypting.then((found) => this.#decryptWith(found, object, key));
  }

  #decryptWith(cipher: Cipher, object: EncryptedObject, key: string): Transformed {
    const { keyID = "", encryptedData = new Uint8Array(), encryptedDEKSourceType: type } = object;
    this.#deps.metrics?.recordKeyId("from_storage", this.#name, keyID);
    const value = cipher.decrypt(encryptedData, key);
    const current = this.#state?.encrypted;
    const isStale = current?.keyID !== keyID || current.encryptedDEKSourceType !== type;
    return { value, isStale, isPinned: true };
  }

  async #readCipher(
    { encryptedDEKSource: ciphertext, keyID: keyId, annotations, encryptedDEKSourceType: type }: EncryptedObject,
    keyText: string,
  ): Promise<Cipher> {
    const uid = randomUUID();
    this.#deps.log.v(6)?.info("decrypting content using envelope service", { uid });
    const { plaintext = new Uint8Array() } = await this.#plugin
      .call(kmsV2.decrypt, { ciphertext, uid, keyId, annotations })
      .catch((cause: Error) => {
        throw new Error(`failed to decrypt DEK, error: ${cause.message}`, { cause });
      });
    const isSeed = type === DEK_SOURCE.hkdfSha256ExtendedNonceSeed;
    const cipher = isSeed ? extendedNonceGcm(plaintext) : aesGcm(checkedAesKey(plaintext));
    this.#cache(keyText, cipher);
    return cipher;
  }

  #cache(keyText: string, cipher: Cipher): void {
    this.#ciphers.set(keyText, cipher, SEED_TTL_MS);
    this.#deps.metrics?.recordDataKeySources(this.#name, this.#ciphers.size);
  }
}

/** The error of Go's library for a key of a wrong length. */
export function checkedAesKey(key: Uint8Array): Buffer {
  if (![16, 24, 32].includes(key.length)) throw new Error(`crypto/aes: invalid key size ${key.length}`);
  return Buffer.from(key);
}

function formatTime(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "0001-01-01T00:00:00Z";
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");
}
