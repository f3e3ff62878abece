/** Encodes objects for the store: as protobuf envelope, JSON or YAML. Decoding accepts all three. */
import { type ApiObject, type JsonObject, type Kind, type StoredVersion, storageKindOf } from "../api/kind.ts";
import { formatApiVersion, kubernetesGroup } from "../api/scheme.ts";
import { decode } from "../schema/decode/decode.ts";
import { encodeJson } from "../schema/json/encode.ts";
import { parseExact } from "../schema/json/exact-numbers.ts";
import { parseJson } from "../schema/json/parse.ts";
import { decodeProtobuf } from "../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope, type Magic } from "../schema/protobuf/envelope.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import { encodeYaml } from "../schema/yaml/write-yaml.ts";
import { parseYaml } from "../schema/yaml/yaml.ts";

export type StorageMediaType = "application/json" | "application/yaml" | "application/vnd.svc.protobuf";

export interface StoredFormat {
  readonly mediaType: StorageMediaType;
  /** The aliases of groups and the magic of protobuf: the project's, or Kubernetes', which can read them then. */
  readonly names: Magic;
}

export interface Codec<T> {
  encode(object: T): Uint8Array;
  /** Returns the object without kind and apiVersion; the client's group alias determines the apiVersion. */
  decode(bytes: Uint8Array): T;
}

const OPENING_BRACE = 0x7b;

export function codecOf<T extends ApiObject>(kind: Kind<T>, format: StoredFormat): Codec<T> {
  // With a conversion webhook values are JSON in the version of the kind (`converted-values.ts`).
  if (kind.converter !== undefined) return plainCodec(kind, { ...format, mediaType: "application/json" });
  const { conversion } = kind;
  if (conversion === undefined) return plainCodecOf(kind, format);
  const stored = plainCodecOf(conversion.storageKind, format);
  return {
    encode: (object) => stored.encode(conversion.toStorage(object)),
    decode: (bytes) => conversion.fromStorage(stored.decode(bytes)),
  };
}

function plainCodecOf<T extends ApiObject>(kind: Kind<T>, format: StoredFormat): Codec<T> {
  const { conversion } = kind;
  if (conversion === undefined) return plainCodec(kind, format);
  const stored = plainCodec(conversion.storageKind, format);
  return {
    encode: (object) => stored.encode(conversion.toStorage(object)),
    decode: (bytes) => conversion.fromStorage(stored.decode(bytes)),
  };
}

/** The codec of a kind that is its own storage version. */
export function plainCodec<T extends ApiObject>(kind: Kind<T>, format: StoredFormat): Codec<T> {
  const restored = afterDecode(kind);
  const { mediaType, names } = format;
  const group = names === "k8s" ? (kind.definedGroup ?? kubernetesGroup(kind.group)) : kind.group;
  const identity = { apiVersion: formatApiVersion(group, kind.version), kind: kind.kind };
  return {
    encode: (object) => {
      const stored = withoutResourceVersion(object);
      // Custom resources have no protobuf form.
      if (mediaType === "application/vnd.svc.protobuf" && kind.schema.unstructured !== true) {
        return encodeEnvelope(names, identity, encodeProtobuf(kind.schema, stored));
      }
      const json = encodeJson(kind.schema, { ...stored, ...identity });
      return mediaType !== "application/yaml" ? json : Buffer.from(encodeYaml(parseJson(json).value));
    },
    decode: (bytes) => {
      const value = MAGICS.has(magicOf(bytes)) ? fromEnvelope(kind, bytes) : fromText(kind, bytes);
      const { kind: _kind, apiVersion: _apiVersion, ...object } = value;
      return restored(object as T);
    },
  };
}

/** Only the storage version is changed after decoding; other versions are used as the webhook returns them. */
function afterDecode<T extends ApiObject>(kind: Kind<T>): (object: T) => T {
  if (storageKindOf(kind).version !== kind.version) return (object) => object;
  return (object) => kind.strategy.afterDecode?.(object) ?? object;
}

/** The revision in the store is the resourceVersion; a copy in the value would be outdated after the next write. */
function withoutResourceVersion<T extends ApiObject>(object: T): T {
  if (object.metadata?.resourceVersion === undefined) return object;
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** The first bytes of an envelope: of this program, or of Kubernetes. */
const MAGICS: ReadonlySet<string> = new Set(["svc\0", "k8s\0"]);

function magicOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, 4)).toString("latin1");
}

/** JSON or YAML, as a value. */
export function parseValue(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  if (bytes[0] !== OPENING_BRACE) return parseYaml(text)[0]?.value;
  try {
    // Stored by a server, which checked what a client can send.
    return parseExact(text);
  } catch {
    // The error has the place in the text.
    return parseJson(bytes).value;
  }
}

function fromText<T extends ApiObject>(kind: Kind<T>, bytes: Uint8Array): T {
  const text = parseValue(bytes);
  if ((text as ApiObject | null | undefined)?.kind !== kind.kind) throw new Error(`it does not hold a ${kind.kind}`);
  const version = storedVersion(kind, String((text as ApiObject).apiVersion));
  if (version?.schema !== undefined) return version.convert(fromJson(version.schema, text) as JsonObject) as T;
  return fromJson(kind.schema, version?.convert(text as JsonObject) ?? text) as T;
}

function fromJson(schema: ObjectSchema, json: unknown): unknown {
  const { value, errors } = decode(schema, json);
  const error = errors[0];
  if (error !== undefined) throw new Error(`field ${error.path}: ${error.message}`);
  return value;
}

/** Undefined where the value has the members of the kind. */
function storedVersion({ storedVersions }: Kind, apiVersion: string): StoredVersion | undefined {
  return storedVersions?.[apiVersion.slice(apiVersion.lastIndexOf("/") + 1)];
}

function fromEnvelope<T extends ApiObject>(kind: Kind<T>, bytes: Uint8Array): T {
  const envelope = decodeEnvelope(bytes);
  if (envelope.kind !== kind.kind) throw new Error(`it holds a ${envelope.kind}, not a ${kind.kind}`);
  const version = storedVersion(kind, envelope.apiVersion);
  if (version?.schema === undefined) return decodeProtobuf(kind.schema, envelope.raw) as T;
  return version.convert(decodeProtobuf(version.schema, envelope.raw) as JsonObject) as T;
}
