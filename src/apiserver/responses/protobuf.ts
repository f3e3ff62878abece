/** Objects, lists and watch events in Kubernetes' protobuf. An object's message is made but once. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { listMeta } from "../../api/meta/list-meta.ts";
import { statusResponse } from "../../api/meta/response-types.ts";
import { binary, message, optional, string } from "../../schema/define.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { encodeEnvelope, type Magic } from "../../schema/protobuf/envelope.ts";
import { ReverseWriter, wireBytes } from "../../schema/protobuf/wire.ts";
import { metadataOnly } from "./partial-metadata.ts";
import type { Identity } from "./type-meta.ts";

const messages = new WeakMap<object, Uint8Array>();

function messageOf<T extends ApiObject>(kind: Kind<T>, object: T): Uint8Array {
  let bytes = messages.get(object);
  if (bytes === undefined) {
    bytes = encodeProtobuf(kind.schema, object);
    messages.set(object, bytes);
  }
  return bytes;
}

/** `PartialObjectMetadata`, and the items of its list. */
export function protobufMetadata(magic: Magic, metaVersion: string, object: ApiObject): Uint8Array {
  const identity = { apiVersion: metaVersion, kind: "PartialObjectMetadata" };
  return encodeEnvelope(magic, identity, encodeProtobuf(metadataOnly, { metadata: object.metadata }));
}

export function protobufMetadataList(
  magic: Magic,
  metaVersion: string,
  metadata: ListMetadata,
  objects: readonly ApiObject[],
): Uint8Array {
  const items = objects.map((object) => encodeProtobuf(metadataOnly, { metadata: object.metadata }));
  const identity = { apiVersion: metaVersion, kind: "PartialObjectMetadataList" };
  return encodeEnvelope(magic, identity, listMessage(metadata, items));
}

export function protobufObject<T extends ApiObject>(
  magic: Magic,
  identity: Identity,
  kind: Kind<T>,
  object: T,
): Uint8Array {
  return encodeEnvelope(magic, identity, messageOf(kind, object));
}

export interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

export function protobufList<T extends ApiObject>(
  magic: Magic,
  identity: Identity,
  kind: Kind<T>,
  metadata: ListMetadata,
  objects: readonly T[],
): Uint8Array {
  const items = objects.map((object) => messageOf(kind, object));
  return encodeEnvelope(magic, identity, listMessage(metadata, items));
}

function listMessage(metadata: ListMetadata, items: readonly Uint8Array[]): Uint8Array {
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

/** A frame of a watch: four bytes of length, then the event. */
export function protobufFrame(type: string, object: Uint8Array): Buffer {
  const event = encodeProtobuf(watchEvent, { type, object: { raw: object } });
  const length = Buffer.alloc(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

export function protobufStatus(magic: Magic, status: object): Uint8Array {
  return encodeEnvelope(magic, { apiVersion: "v1", kind: "Status" }, encodeProtobuf(statusResponse, status));
}
