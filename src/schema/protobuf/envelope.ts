/**
 * The envelope of a protobuf object: four magic bytes, then a `runtime.Unknown` with apiVersion, kind and the object.
 */
import { Buffer } from "node:buffer";
import { ProtobufError, Reader, ReverseWriter, wireBytes } from "./wire.ts";

export type Magic = "k8s" | "svc";

export interface Envelope {
  readonly magic: Magic;
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Uint8Array;
  readonly contentEncoding: string;
  readonly contentType: string;
}

export function encodeEnvelope(
  magic: Magic,
  type: { readonly apiVersion: string; readonly kind: string },
  raw: Uint8Array,
): Buffer {
  const writer = new ReverseWriter();
  writer.string("");
  writer.tag(4, wireBytes);
  writer.string("");
  writer.tag(3, wireBytes);
  writer.bytes(raw);
  writer.tag(2, wireBytes);
  const before = writer.length;
  writer.string(type.kind);
  writer.tag(2, wireBytes);
  writer.string(type.apiVersion);
  writer.tag(1, wireBytes);
  writer.uint32(writer.length - before);
  writer.tag(1, wireBytes);
  writer.raw(Buffer.from(`${magic}\0`, "latin1"));
  return writer.take();
}

/** What precedes and follows an object of `length` bytes in its envelope. */
export function splitEnvelope(
  magic: Magic,
  type: { readonly apiVersion: string; readonly kind: string },
  length: number,
): { readonly start: Uint8Array; readonly end: Uint8Array } {
  const empty = encodeEnvelope(magic, type, EMPTY);
  // The last bytes are the length 0 of the object, and two empty strings with their tags.
  const end = empty.subarray(empty.length - 4);
  const writer = new ReverseWriter();
  writer.uint32(length);
  writer.raw(empty.subarray(0, empty.length - 5));
  return { start: writer.take(), end };
}

const EMPTY = new Uint8Array();

/** Throws a `ProtobufError` when the magic bytes are unknown or the envelope is malformed. */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  const magic = magicOf(bytes);
  if (magic === undefined)
    throw new ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
  const reader = new Reader(bytes.subarray(4));
  const envelope = {
    apiVersion: "",
    kind: "",
    raw: new Uint8Array() as Uint8Array,
    contentEncoding: "",
    contentType: "",
  };
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if ((tag & 7) !== wireBytes) reader.skip(tag & 7, reader.end);
    else if (tag >>> 3 === 1) readType(reader, envelope);
    else if (tag >>> 3 === 2) envelope.raw = reader.view(reader.end);
    else if (tag >>> 3 === 3) envelope.contentEncoding = reader.string(reader.end);
    else if (tag >>> 3 === 4) envelope.contentType = reader.string(reader.end);
    else reader.skip(wireBytes, reader.end);
  }
  return { magic, ...envelope };
}

function readType(reader: Reader, into: { apiVersion: string; kind: string }): void {
  const stop = reader.delimited(reader.end);
  while (reader.position < stop) {
    const tag = reader.tag();
    if (tag === ((1 << 3) | wireBytes)) into.apiVersion = reader.string(stop);
    else if (tag === ((2 << 3) | wireBytes)) into.kind = reader.string(stop);
    else reader.skip(tag & 7, stop);
  }
}

function magicOf(bytes: Uint8Array): Magic | undefined {
  const text = String.fromCharCode(...bytes.subarray(0, 4));
  return text === "k8s\0" ? "k8s" : text === "svc\0" ? "svc" : undefined;
}
