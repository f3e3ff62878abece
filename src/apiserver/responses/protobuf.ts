/** Encodes objects, lists and watch events in Kubernetes' protobuf. Each object is encoded once. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { statusResponse } from "../../api/meta/response-types.ts";
import { binary, message, optional, string } from "../../schema/define.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { encodeEnvelope, type Magic, splitEnvelope } from "../../schema/protobuf/envelope.ts";
import { ReverseWriter, wireBytes } from "../../schema/protobuf/wire.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";
import { partialObjectMetadata } from "./partial-metadata.ts";
import type { TypeMeta } from "./type-meta.ts";

const encodedObjects = new WeakMap<object, Uint8Array>();

function encodeOnce<T extends ApiObject>(kind: Kind<T>, object: T): Uint8Array {
  let bytes = encodedObjects.get(object);
  if (bytes === undefined) {
    bytes = toUnpooledBuffer(encodeProtobuf(kind.schema, object));
    encodedObjects.set(object, bytes);
  }
  return bytes;
}

/** Encodes `PartialObjectMetadata`. */
export function encodeProtobufMetadata(magic: Magic, metaVersion: string, object: ApiObject): Uint8Array {
  const typeMeta = { apiVersion: metaVersion, kind: "PartialObjectMetadata" };
  return encodeEnvelope(magic, typeMeta, encodeProtobuf(partialObjectMetadata, { metadata: object.metadata }));
}

export function encodeProtobufMetadataList(
  magic: Magic,
  metaVersion: string,
  metadata: ListMetadata,
  rows: readonly { readonly object: ApiObject }[],
): Uint8Array {
  const items = rows.map(({ object }) => encodeProtobuf(partialObjectMetadata, { metadata: object.metadata }));
  const typeMeta = { apiVersion: metaVersion, kind: "PartialObjectMetadataList" };
  return encodeEnvelope(magic, typeMeta, encodeList(metadata, items));
}

export function encodeProtobufObject<T extends ApiObject>(
  magic: Magic,
  typeMeta: TypeMeta,
  kind: Kind<T>,
  object: T,
): Uint8Array {
  return encodeEnvelope(magic, typeMeta, encodeOnce(kind, object));
}

export interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

export function encodeProtobufList<T extends ApiObject>(
  magic: Magic,
  typeMeta: TypeMeta,
  kind: Kind<T>,
  metadata: ListMetadata,
  objects: readonly T[],
): Uint8Array {
  const items = objects.map((object) => encodeOnce(kind, object));
  return encodeEnvelope(magic, typeMeta, encodeList(metadata, items));
}

/**
 * The same as `encodeProtobufList` in parts, without all of it in memory. The length of the list comes first: the
 * objects are encoded twice, the first time to empty parts.
 */
export function* protobufListParts<T extends ApiObject>(
  magic: Magic,
  typeMeta: TypeMeta,
  kind: Kind<T>,
  metadata: ListMetadata,
  rows: readonly { readonly object: T }[],
): Generator<Uint8Array> {
  const head = encodeList(metadata, []);
  let length = head.length;
  for (const row of rows) {
    const { length: size } = encodeOnce(kind, row.object);
    length += itemHead(size).length + size;
    yield EMPTY;
  }
  const { start, end } = splitEnvelope(magic, typeMeta, length);
  yield start;
  yield head;
  for (const row of rows) {
    const item = encodeOnce(kind, row.object);
    yield itemHead(item.length);
    yield item;
  }
  yield end;
}

const EMPTY = new Uint8Array(0);

function itemHead(length: number): Uint8Array {
  const writer = new ReverseWriter();
  writer.uint32(length);
  writer.tag(2, wireBytes);
  return writer.take();
}

function encodeList(metadata: ListMetadata, items: readonly Uint8Array[]): Uint8Array {
  const writer = new ReverseWriter();
  for (let index = items.length - 1; index >= 0; index--) {
    writer.bytes(items[index]!);
    writer.tag(2, wireBytes);
  }
  writer.bytes(encodeProtobuf(listMeta, metadata));
  writer.tag(1, wireBytes);
  return writer.take();
}

const rawExtension = message("runtime.RawExtension", { raw: optional(1, binary) });
const watchEvent = message("meta/v1.WatchEvent", { type: optional(1, string), object: optional(2, rawExtension) });

/** A watch frame: four bytes of length, then the event. */
export function encodeProtobufFrame(type: string, object: Uint8Array): Buffer {
  const event = encodeProtobuf(watchEvent, { type, object: { raw: object } });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

export function encodeProtobufStatus(magic: Magic, status: object): Uint8Array {
  return encodeEnvelope(magic, { apiVersion: "v1", kind: "Status" }, encodeProtobuf(statusResponse, status));
}
