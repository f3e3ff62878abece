/**
 * KMS v1, under the gate `KMSv1`: each value has a key of its own, which the plugin encrypts. The value begins with the
 * length of the encrypted key in two bytes, and that key.
 */
import { randomBytes } from "node:crypto";
import { aesCbc, aesGcm } from "../ciphers.ts";
import type { KmsConfiguration } from "../configuration-schema.ts";
import {
  cipherTransformer,
  type PrefixedTransformer,
  type Transformed,
  type Transformer,
  withFallback,
} from "../transformer.ts";
import { CachedCheck, type KmsDeps, KmsPlugin, type KmsProvider, timeoutMsOf } from "./kms-provider.ts";
import { checkedAesKey } from "./kms-v2.ts";
import { kmsV1 } from "./protocol.ts";

const PREFIX = "k8s:enc:kms:v1:";
const VERSION = "v1beta1";
const KEY_BYTES = 32;
const CACHE_SIZE = 1000;
const LENGTH_BYTES = 2;
const LENGTH_MAX = 0xffff;

export class KmsV1Provider implements KmsProvider {
  readonly prefixed: PrefixedTransformer;
  readonly checkMs: number;
  readonly #name: string;
  readonly #deps: KmsDeps;
  readonly #plugin: KmsPlugin;
  readonly #check: CachedCheck;
  readonly #cacheSize: number;
  /** By encrypted key, least recently used first. */
  readonly #transformers = new Map<string, Transformer>();
  #version: Promise<void> | undefined;

  constructor(config: KmsConfiguration, deps: KmsDeps) {
    const { name = "", cachesize } = config;
    this.#name = name;
    this.#deps = deps;
    this.#plugin = new KmsPlugin(config, deps);
    this.#cacheSize = cachesize ?? CACHE_SIZE;
    // The check makes two calls.
    this.checkMs = 2 * timeoutMsOf(config);
    this.#check = new CachedCheck(deps.clock, () => this.#ping());
    this.prefixed = {
      prefix: `${PREFIX}${name}:`,
      transformer: {
        encrypt: (value, key) => this.#encrypt(value, key),
        decrypt: (value, key) => this.#decrypt(value, key),
      },
    };
  }

  [Symbol.dispose](): void {
    this.#plugin[Symbol.dispose]();
  }

  async check(): Promise<void> {
    await this.#check.run();
  }

  async #ping(): Promise<void> {
    const fail = (section: string) => (cause: Error) => {
      const what = `failed to perform ${section} section of the healthz check for KMS Provider ${this.#name}`;
      throw new Error(`${what}, error: ${cause.message}`, { cause });
    };
    const encrypted = await this.#encryptKey(Buffer.from("ping")).catch(fail("encrypt"));
    await this.#decryptKey(encrypted).catch(fail("decrypt"));
  }

  async #encrypt(value: Uint8Array, key: string): Promise<Uint8Array> {
    const { clock, metrics } = this.#deps;
    metrics?.recordArrival("to_storage");
    const start = clock.monotonic();
    const dataKey = randomBytes(KEY_BYTES);
    metrics?.recordDataKey(clock.monotonic() - start);
    const encryptedKey = Buffer.from(await this.#encryptKey(dataKey));
    if (encryptedKey.length > LENGTH_MAX)
      throw new Error("cryptobyte: pending child length exceeds 2-byte length prefix");
    const data = await this.#addTransformer(encryptedKey, dataKey).encrypt(value, key);
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(encryptedKey.length);
    return Buffer.concat([length, encryptedKey, data]);
  }

  #decrypt(value: Uint8Array, key: string): Transformed | Promise<Transformed> {
    const { metrics } = this.#deps;
    metrics?.recordArrival("from_storage");
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const end = bytes.length < LENGTH_BYTES ? Number.POSITIVE_INFINITY : LENGTH_BYTES + bytes.readUInt16BE();
    if (end > bytes.length) {
      throw new Error("invalid data encountered by envelope transformer: failed to read uint16 length prefixed data");
    }
    const encryptedKey = bytes.subarray(LENGTH_BYTES, end);
    const found = this.#cached(encryptedKey);
    const finish = async (transformer: Transformer): Promise<Transformed> => ({
      ...(await transformer.decrypt(bytes.subarray(end), key)),
      isPinned: true,
    });
    if (found !== undefined) return finish(found);
    if (this.#cacheSize > 0) metrics?.recordCacheMiss();
    return this.#decryptKey(encryptedKey).then((dataKey) => finish(this.#addTransformer(encryptedKey, dataKey)));
  }

  #cached(encryptedKey: Buffer): Transformer | undefined {
    const text = encryptedKey.toString("latin1");
    const found = this.#transformers.get(text);
    if (found === undefined) return undefined;
    this.#transformers.delete(text);
    this.#transformers.set(text, found);
    return found;
  }

  #addTransformer(encryptedKey: Buffer, dataKey: Uint8Array): Transformer {
    const aes = checkedAesKey(dataKey);
    // Releases before 1.25 wrote AES-CBC.
    const transformer = withFallback(cipherTransformer(aesGcm(aes)), cipherTransformer(aesCbc(aes)));
    if (this.#cacheSize <= 0) return transformer;
    this.#transformers.set(encryptedKey.toString("latin1"), transformer);
    if (this.#transformers.size > this.#cacheSize) {
      const [oldest] = this.#transformers.keys();
      if (oldest !== undefined) this.#transformers.delete(oldest);
    }
    this.#deps.metrics?.recordCacheFill(this.#transformers.size / this.#cacheSize);
    return transformer;
  }

  async #encryptKey(plain: Uint8Array): Promise<Uint8Array> {
    await this.#checkVersion();
    return (await this.#plugin.call(kmsV1.encrypt, { version: VERSION, plain })).cipher ?? new Uint8Array();
  }

  async #decryptKey(cipher: Uint8Array): Promise<Uint8Array> {
    await this.#checkVersion();
    return (await this.#plugin.call(kmsV1.decrypt, { version: VERSION, cipher })).plain ?? new Uint8Array();
  }

  /** Once, before the first call. */
  async #checkVersion(): Promise<void> {
    this.#version ??= this.#readVersion().catch((error: unknown) => {
      this.#version = undefined;
      throw error;
    });
    await this.#version;
  }

  async #readVersion(): Promise<void> {
    const { version = "" } = await this.#plugin.call(kmsV1.version, { version: VERSION }).catch((cause: Error) => {
      throw new Error(`failed get version from remote KMS provider: ${cause.message}`, { cause });
    });
    if (version === VERSION) return;
    throw new Error(`KMS provider api version ${version} is not supported, only ${VERSION} is supported now`);
  }
}
