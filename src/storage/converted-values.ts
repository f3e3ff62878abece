/**
 * The values of a resource as one of its versions reads and writes them, where a webhook converts:
 *
 *     in the store     pruned, defaults of its version   asked   pruned   as the kind's codec writes
 *     {v1, hostPort} → {v1, hostPort, …}               →       → {v2, …} → {v2, host, port}
 *
 * What lies there in the version that is wanted, and in which all is written now, is passed on as it is.
 */
import type { ApiObject, Converter, JsonObject, Kind } from "../api/kind.ts";
import { formatApiVersion } from "../api/scheme.ts";
import { decode } from "../schema/decode/decode.ts";
import { applyDefaults } from "../schema/defaults.ts";
import { stringify } from "../schema/json/encode.ts";
import { toUnpooledBuffer } from "../std/memory/unpooled-buffer.ts";
import { type Codec, parseValue, plainCodec, type StorageMediaType } from "./codec.ts";
import type { KeyValue } from "./store.ts";

/** One write: what goes into the store, and what a client sees of it from then on. */
export interface ConvertedWrite {
  readonly stored: Uint8Array;
  readonly converted: Uint8Array;
}

/**
 * Ends a value that lies in the store in another version than values are written in now. It is no other JSON for it,
 * but equals nothing that is written: the next write of the object moves it, even one that changes nothing.
 */
const OUTDATED_MARK = Buffer.from("\n");

export class ConvertedValues<T extends ApiObject> {
  readonly #kind: Kind<T>;
  readonly #converter: Converter;
  readonly #codec: Codec<T>;
  readonly #mediaType: StorageMediaType;
  readonly #written = new RecentWrites();

  constructor(kind: Kind<T>, converter: Converter, codec: Codec<T>, mediaType: StorageMediaType) {
    this.#kind = kind;
    this.#converter = converter;
    this.#codec = codec;
    this.#mediaType = mediaType;
  }

  /** Values for the kind's codec, from those in the store; all that need it are asked for together. */
  async toKindVersion(items: readonly KeyValue[]): Promise<readonly KeyValue[]> {
    const storage = this.#converter.storageKind.version;
    const wanted = this.#kind.version;
    const versions = items.map(({ value }) => storedVersionOf(value));
    const asItIs = (version: string | undefined): boolean =>
      version === undefined || (version === wanted && version === storage && this.#isJson);
    const shown = [...items];
    const others = versions.flatMap((version, place) => {
      if (asItIs(version)) return [];
      const value = this.#written.take(items[place]!.value);
      if (value === undefined) return [place];
      shown[place] = { ...items[place]!, value };
      return [];
    });
    if (others.length === 0) return shown;
    const sources = others.map((place) => this.#source(parseValue(items[place]!.value) as JsonObject));
    const converted = await this.#converter.convert(sources, wanted);
    for (const [i, place] of others.entries()) {
      const bytes = this.#encoded(converted[i]!);
      const value = versions[place] === storage ? bytes : Buffer.concat([bytes, OUTDATED_MARK]);
      shown[place] = { ...items[place]!, value: toUnpooledBuffer(value) };
    }
    return shown;
  }

  /** `bytes` are as the kind's codec writes them. What is shown has been to the store's version and back. */
  async toStorageVersion(bytes: Uint8Array): Promise<ConvertedWrite> {
    const { storageKind: stored } = this.#converter;
    const own = stored.version === this.#kind.version;
    if (own && this.#isJson) return { stored: bytes, converted: bytes };
    const target = plainCodec(stored, this.#mediaType);
    const sent = parseValue(bytes) as JsonObject;
    const [object] = await this.#converter.convert([sent], stored.version);
    const written = target.encode(decodeObject(stored, object!));
    if (own) return { stored: written, converted: bytes };
    const [back] = await this.#converter.convert([this.#source(object!)], this.#kind.version);
    const shown = this.#encoded(back!);
    this.#written.add(written, shown);
    return { stored: written, converted: shown };
  }

  /** Custom resources have no protobuf form. */
  get #isJson(): boolean {
    return this.#mediaType !== "application/yaml";
  }

  /** As its own version reads it. One that no version knows is the webhook's to judge. */
  #source(value: JsonObject): JsonObject {
    const kind = this.#converter.kindOf(versionOf(value));
    if (kind === undefined) return value;
    const apiVersion = formatApiVersion(kind.group, kind.version);
    const object = { ...applyDefaults(kind.schema, decodeObject(kind, value)), apiVersion, kind: kind.kind };
    return JSON.parse(stringify(kind.schema, object)) as JsonObject;
  }

  #encoded(value: JsonObject): Uint8Array {
    return this.#codec.encode(decodeObject(this.#kind, value));
  }
}

/** Of what all recent writes that nobody has read yet may hold. */
const RECENT_BYTES_MAX = 2 ** 20;

/** What has just been written comes back as a change soon, and is known already: a third of all calls for writes. */
class RecentWrites {
  /** What is shown, by what is stored; the oldest first. */
  readonly #shown = new Map<string, Uint8Array>();
  #bytes = 0;

  add(stored: Uint8Array, shown: Uint8Array): void {
    const key = keyOf(stored);
    this.take(stored);
    this.#shown.set(key, toUnpooledBuffer(shown));
    this.#bytes += key.length + shown.length;
    for (const [oldest, value] of this.#shown) {
      if (this.#bytes <= RECENT_BYTES_MAX) return;
      this.#remove(oldest, value);
    }
  }

  /** It is needed but once. */
  take(stored: Uint8Array): Uint8Array | undefined {
    if (this.#shown.size === 0) return undefined;
    const key = keyOf(stored);
    const shown = this.#shown.get(key);
    if (shown !== undefined) this.#remove(key, shown);
    return shown;
  }

  #remove(key: string, shown: Uint8Array): void {
    this.#shown.delete(key);
    this.#bytes -= key.length + shown.length;
  }
}

function keyOf(stored: Uint8Array): string {
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString("latin1");
}

/** Without what it says that it is, and what the kind does not know. */
function decodeObject<T extends ApiObject>(kind: Kind<T>, value: JsonObject): T {
  const {
    kind: _,
    apiVersion: __,
    ...object
  } = decode(kind.schema, value, { unknownFields: "drop" }).value as ApiObject;
  return object as T;
}

/** Undefined for what is no object: who reads the value says what is wrong with it. */
function storedVersionOf(value: Uint8Array): string | undefined {
  const head = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, HEAD_BYTES)).toString("latin1");
  const version = HEAD.exec(head)?.[1];
  if (version !== undefined) return version;
  try {
    return versionOf(parseValue(value) as JsonObject);
  } catch {
    return undefined;
  }
}

/** As values mostly begin, which saves reading them. */
const HEAD = /^\{(?:"kind":"[A-Za-z0-9]*",)?"apiVersion":"[^"\\/]*\/([^"\\/]+)"/;
const HEAD_BYTES = 512;

function versionOf({ apiVersion }: JsonObject): string {
  const text = typeof apiVersion === "string" ? apiVersion : "";
  return text.slice(text.lastIndexOf("/") + 1);
}
