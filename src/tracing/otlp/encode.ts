/**
 * The messages of OTLP (opentelemetry/proto/trace/v1 and collector/trace/v1) as protobuf. They need few types, among
 * them fixed64, which no other message of this project has; each span is encoded once.
 */
import type { Attributes, AttributeValue, Scope, Span } from "../span.ts";
import type { SpanContext } from "../trace-context.ts";

export const EXPORT_PATH = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
const SAMPLED = 1;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

class Writer {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  #push(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#length += bytes.length;
  }

  #tag(field: number, wireType: number): void {
    this.#varint(BigInt((field << 3) | wireType));
  }

  #varint(value: bigint): void {
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, value);
    while (rest >= 0x80n) {
      bytes.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    bytes.push(Number(rest));
    this.#push(Uint8Array.from(bytes));
  }

  integer(field: number, value: number): void {
    this.#tag(field, VARINT);
    this.#varint(BigInt(value));
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED64);
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    this.#push(bytes);
  }

  fixed64(field: number, value: bigint): void {
    this.#tag(field, FIXED64);
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
    this.#push(bytes);
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, FIXED32);
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.#push(bytes);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, BYTES);
    this.#varint(BigInt(value.length));
    this.#push(value);
  }

  text(field: number, value: string): void {
    if (value !== "") this.bytes(field, Buffer.from(value));
  }

  message(field: number, write: (writer: Writer) => void): void {
    this.bytes(field, encode(write));
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }
}

function encode(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  write(writer);
  return writer.finish();
}

/** An encoded span, and the library that it is attributed to. */
export interface EncodedSpan {
  readonly scope: Scope;
  readonly bytes: Uint8Array;
}

export function encodeSpan(span: Span): EncodedSpan {
  const { trace } = span;
  // A double of nanoseconds since 1970 is precise to 256 only.
  const nanoseconds = (at: number): bigint => {
    const ms = trace.epoch + at;
    return BigInt(Math.floor(ms)) * 1_000_000n + BigInt(Math.round((ms % 1) * 1e6));
  };
  const parentId = span.parent?.id ?? trace.remoteParent?.spanId;
  const bytes = encode((writer) => {
    writer.bytes(1, Buffer.from(trace.traceId, "hex"));
    writer.bytes(2, Buffer.from(span.id, "hex"));
    writer.text(3, trace.remoteParent?.traceState ?? "");
    if (parentId !== undefined) writer.bytes(4, Buffer.from(parentId, "hex"));
    writer.text(5, span.name);
    writer.integer(6, KINDS[span.kind]);
    writer.fixed64(7, nanoseconds(span.startedAt));
    writer.fixed64(8, nanoseconds(span.endedAt ?? span.startedAt));
    writeAttributes(writer, 9, span.attributes);
    for (const { name, at, attributes } of span.events) {
      writer.message(11, (event) => {
        event.fixed64(1, nanoseconds(at));
        event.text(2, name);
        writeAttributes(event, 3, attributes);
      });
    }
    const { link } = trace;
    if (link !== undefined && span.parent === undefined) writer.message(13, (to) => writeLink(to, link));
    const { error } = span;
    if (error !== undefined) {
      writer.message(15, (status) => {
        status.text(2, error);
        status.integer(3, STATUS_ERROR);
      });
    }
    writer.fixed32(16, SAMPLED);
  });
  return { scope: span.scope, bytes };
}

function writeLink(writer: Writer, { traceId, spanId, traceState }: SpanContext): void {
  writer.bytes(1, Buffer.from(traceId, "hex"));
  writer.bytes(2, Buffer.from(spanId, "hex"));
  writer.text(3, traceState);
}

function writeAttributes(writer: Writer, field: number, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) {
    writer.message(field, (pair) => {
      pair.text(1, key);
      pair.message(2, (any) => writeValue(any, value));
    });
  }
}

function writeValue(writer: Writer, value: AttributeValue): void {
  if (typeof value === "string") writer.bytes(1, Buffer.from(value));
  else if (typeof value === "boolean") writer.integer(2, value ? 1 : 0);
  else if (typeof value !== "number") {
    writer.message(5, (array) => {
      for (const each of value) array.message(1, (any) => writeValue(any, each));
    });
  } else if (Number.isSafeInteger(value)) writer.integer(3, value);
  else writer.double(4, value);
}

/** An ExportTraceServiceRequest. */
export function encodeRequest(resource: Attributes, spans: readonly EncodedSpan[]): Buffer {
  const scopes = Map.groupBy(spans, ({ scope }) => scope);
  return encode((request) => {
    request.message(1, (resourceSpans) => {
      resourceSpans.message(1, (writer) => writeAttributes(writer, 1, resource));
      for (const [scope, members] of scopes) {
        resourceSpans.message(2, (scopeSpans) => {
          scopeSpans.message(1, (library) => library.text(1, scope));
          for (const { bytes } of members) scopeSpans.bytes(2, bytes);
        });
      }
    });
  });
}

export interface PartialSuccess {
  readonly rejected: number;
  readonly message: string;
}

/** The `partial_success` of an ExportTraceServiceResponse. Throws for bytes that are no message. */
export function decodeResponse(bytes: Uint8Array): PartialSuccess {
  let rejected = 0;
  let message = "";
  for (const [field, value] of fieldsOf(bytes)) {
    if (field !== 1 || typeof value === "bigint") continue;
    for (const [member, content] of fieldsOf(value)) {
      if (member === 1 && typeof content === "bigint") rejected = Number(content);
      if (member === 2 && typeof content !== "bigint") message = Buffer.from(content).toString();
    }
  }
  return { rejected, message };
}

function* fieldsOf(bytes: Uint8Array): Generator<readonly [number, Uint8Array | bigint]> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error("the response is no protobuf message");
  };
  const take = (length: number): Uint8Array => {
    if (length > bytes.length - at) throw new Error("the response is no protobuf message");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wireType = tag & 7;
    if (wireType === VARINT) yield [tag >>> 3, varint()];
    else if (wireType === BYTES) yield [tag >>> 3, take(Number(varint()))];
    else if (wireType === FIXED64) take(8);
    else if (wireType === FIXED32) take(4);
    else throw new Error("the response is no protobuf message");
  }
}
