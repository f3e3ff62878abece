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

/** Bytes of a new buffer; a span has a few hundred. */
const BUFFER_BYTES = 64 * 1024;
/** Bytes of the longest varint of a length or a tag. */
const VARINT_BYTES_MAX = 10;

/** Writes into one buffer, which grows. */
class Writer {
  #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #at = 0;

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }

  #tag(field: number, wireType: number): void {
    this.#varint((field << 3) | wireType);
  }

  /** Writes an integer that is not negative. */
  #varint(value: number): void {
    this.#reserve(VARINT_BYTES_MAX);
    let rest = value;
    while (rest >= 0x80) {
      this.#buffer[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#buffer[this.#at++] = rest;
  }

  integer(field: number, value: number): void {
    this.#tag(field, VARINT);
    if (value >= 0) {
      this.#varint(value);
      return;
    }
    // Negative numbers have ten bytes: two's complement of 64 bits.
    let rest = BigInt.asUintN(64, BigInt(value));
    this.#reserve(VARINT_BYTES_MAX);
    for (; rest >= 0x80n; rest >>= 7n) this.#buffer[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.#buffer[this.#at++] = Number(rest);
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED64);
    this.#reserve(8);
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
  }

  fixed64(field: number, value: bigint): void {
    this.#tag(field, FIXED64);
    this.#reserve(8);
    this.#at = this.#buffer.writeBigUInt64LE(value, this.#at);
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, FIXED32);
    this.#reserve(4);
    this.#at = this.#buffer.writeUInt32LE(value, this.#at);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, BYTES);
    this.#varint(value.length);
    this.#reserve(value.length);
    this.#buffer.set(value, this.#at);
    this.#at += value.length;
  }

  hex(field: number, value: string): void {
    this.#tag(field, BYTES);
    this.#varint(value.length / 2);
    this.#reserve(value.length / 2);
    this.#at += this.#buffer.write(value, this.#at, "hex");
  }

  /** Empty text is the default, which protobuf omits. */
  text(field: number, value: string): void {
    if (value !== "") this.textOrEmpty(field, value);
  }

  textOrEmpty(field: number, value: string): void {
    this.#tag(field, BYTES);
    const length = Buffer.byteLength(value);
    this.#varint(length);
    this.#reserve(length);
    this.#at += this.#buffer.write(value, this.#at, "utf8");
  }

  message(field: number, write: (writer: this) => void): void {
    this.#tag(field, BYTES);
    this.#reserve(1);
    // One byte for the length; a longer length moves the content.
    const start = ++this.#at;
    write(this);
    const length = this.#at - start;
    if (length >= 0x80) {
      const extra = Math.floor(Math.log2(length) / 7);
      this.#reserve(extra);
      this.#buffer.copyWithin(start + extra, start, this.#at);
    }
    this.#at = start - 1;
    this.#varint(length);
    this.#at += length;
  }

  clear(): void {
    this.#at = 0;
  }

  /** A copy: the buffer is used again. */
  take(): Buffer {
    return Buffer.from(this.#buffer.subarray(0, this.#at));
  }
}

const shared = new Writer();

function encode(write: (writer: Writer) => void): Buffer {
  shared.clear();
  write(shared);
  return shared.take();
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
    writer.hex(1, trace.traceId);
    writer.hex(2, span.id);
    writer.text(3, trace.remoteParent?.traceState ?? "");
    if (parentId !== undefined) writer.hex(4, parentId);
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
  writer.hex(1, traceId);
  writer.hex(2, spanId);
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
  if (typeof value === "string") writer.textOrEmpty(1, value);
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
