/**
 * Stored values of a custom resource with a conversion webhook, converted for one of its versions:
 *
 *     stored           pruned, defaults of its version   webhook   pruned, encoded by the kind's codec
 *     {v1, hostPort} → {v1, hostPort, …}               →         → {v2, …} → {v2, host, port}
 *
 * A value in the requested version is not converted if that is the storage version.
 */
import type { ApiObject, Converter, JsonObject, Kind } from "../api/kind.ts";
import { formatApiVersion } from "../api/scheme.ts";
import { decode } from "../schema/decode/decode.ts";
import { applyStoredDefaults } from "../schema/defaults.ts";
import { stringify } from "../schema/json/encode.ts";
import { parseExact } from "../schema/json/exact-numbers.ts";
import { toUnpooledBuffer } from "../std/memory/unpooled-buffer.ts";
import { type Codec, parseValue, plainCodec, type StoredFormat } from "./codec.ts";
import type { KeyValue } from "./store.ts";

/** The values of one write: in the storage version, and converted back to the version of the request. */
export interface ConvertedWrite {
  readonly stored: Uint8Array;
  readonly converted: Uint8Array;
}

/**
 * Appended to the converted bytes of a value that is not stored in the storage version. It does not change the JSON,
 * but makes the bytes differ from those of every write: the next write stores the object in the storage version, even
 * when it changes nothing.
 */
const OUTDATED_MARK = Buffer.from("\n");

export class ConvertedValues<T extends ApiObject> {
  readonly #kind: Kind<T>;
  readonly #converter: Converter;
  readonly #codec: Codec<T>;
  readonly #format: StoredFormat;
  readonly #written = new RecentWrites();

  constructor(kind: Kind<T>, converter: Converter, codec: Codec<T>, format: StoredFormat) {
    this.#kind = kind;
    this.#converter = converter;
    this.#codec = codec;
    this.#format = format;
  }

  /** Converts stored values for the kind's codec, with one call of the webhook. */
  async toKindVersion(items: readonly KeyValue[]): Promise<readonly KeyValue[]> {
    const storage = this.#converter.storageKind.version;
    const requested = this.#kind.version;
    const versions = items.map(({ value }) => storedVersionOf(value));
    const isReady = (version: string | undefined): boolean =>
      version === undefined || (version === requested && version === storage && this.#isJson);
    const result = [...items];
    const pending = versions.flatMap((version, index) => {
      if (isReady(version)) return [];
      const value = this.#written.take(items[index]!.value);
      if (value === undefined) return [index];
      result[index] = { ...items[index]!, value };
      return [];
    });
    if (pending.length === 0) return result;
    const sources = pending.map((index) => this.#source(parseValue(items[index]!.value) as JsonObject));
    const converted = await this.#converter.convert(sources, requested);
    for (const [i, index] of pending.entries()) {
      const bytes = this.#encoded(converted[i]!);
      const value = versions[index] === storage ? bytes : Buffer.concat([bytes, OUTDATED_MARK]);
      result[index] = { ...items[index]!, value: toUnpooledBuffer(value) };
    }
    return result;
  }

  /** Converts bytes of the kind's codec to the storage version, and these back: a read returns the result. */
  async toStorageVersion(bytes: Uint8Array): Promise<ConvertedWrite> {
    const { storageKind: stored } = this.#converter;
    const isStorageVersion = stored.version === this.#kind.version;
    if (isStorageVersion && this.#isJson) return { stored: bytes, converted: bytes };
    const target = plainCodec(stored, this.#format);
    const sent = parseValue(bytes) as JsonObject;
    const [object] = await this.#converter.convert([sent], stored.version);
    const written = target.encode(decodeObject(stored, object!));
    if (isStorageVersion) return { stored: written, converted: bytes };
    const [back] = await this.#converter.convert([this.#source(object!)], this.#kind.version);
    const converted = this.#encoded(back!);
    this.#written.add(written, converted);
    return { stored: written, converted };
  }

  /** Custom resources have no protobuf form. */
  get #isJson(): boolean {
    return this.#format.mediaType !== "application/yaml";
  }

  /** The value as decoded in its own version. The webhook decides on values of unknown versions. */
  #source(value: JsonObject): JsonObject {
    const kind = this.#converter.kindOf(versionOf(value));
    if (kind === undefined) return value;
    const apiVersion = formatApiVersion(kind.group, kind.version);
    const object = { ...applyStoredDefaults(kind.schema, decodeObject(kind, value)), apiVersion, kind: kind.kind };
    return parseExact(stringify(kind.schema, object)) as JsonObject;
  }

  #encoded(value: JsonObject): Uint8Array {
    return this.#codec.encode(decodeObject(this.#kind, value));
  }
}

/** Limit of the bytes of recent writes that have not been read. */
const RECENT_BYTES_MAX = 2 ** 20;

/**
 * Caches converted values of recent writes until the feed reads them: saves a third of the webhook calls for writes.
 */
class RecentWrites {
  /** Converted values by stored value, oldest first. */
  readonly #converted = new Map<string, Uint8Array>();
  #bytes = 0;

  add(stored: Uint8Array, converted: Uint8Array): void {
    const key = keyOf(stored);
    this.take(stored);
    this.#converted.set(key, toUnpooledBuffer(converted));
    this.#bytes += key.length + converted.length;
    for (const [oldest, value] of this.#converted) {
      if (this.#bytes <= RECENT_BYTES_MAX) return;
      this.#remove(oldest, value);
    }
  }

  /** Removes the value: it is read once. */
  take(stored: Uint8Array): Uint8Array | undefined {
    if (this.#converted.size === 0) return undefined;
    const key = keyOf(stored);
    const converted = this.#converted.get(key);
    if (converted !== undefined) this.#remove(key, converted);
    return converted;
  }

  #remove(key: string, converted: Uint8Array): void {
    this.#converted.delete(key);
    this.#bytes -= key.length + converted.length;
  }
}

function keyOf(stored: Uint8Array): string {
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString("latin1");
}

/** Decodes without kind, apiVersion and unknown fields. */
function decodeObject<T extends ApiObject>(kind: Kind<T>, value: JsonObject): T {
  const {
    kind: _,
    apiVersion: __,
    ...object
  } = decode(kind.schema, value, { unknownFields: "drop" }).value as ApiObject;
  return object as T;
}

/** Undefined for a value that is not an object; decoding reports the error. */
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

/** Matches the start of most values, which saves parsing them. */
const HEAD = /^\{(?:"kind":"[A-Za-z0-9]*",)?"apiVersion":"[^"\\/]*\/([^"\\/]+)"/;
const HEAD_BYTES = 512;

function versionOf({ apiVersion }: JsonObject): string {
  const text = typeof apiVersion === "string" ? apiVersion : "";
  return text.slice(text.lastIndexOf("/") + 1);
}
