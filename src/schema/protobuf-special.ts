/** Scalars that are messages on the wire (facts/types.json `encodings`): times, quantities, int-or-string, raw JSON. */
import { Buffer } from "node:buffer";
import { canonicalQuantity, quantityHint } from "./quantity.ts";
import type { RawSchema, SpecialSchema } from "./schema.ts";
import { formatDuration, formatInstant, type Instant, parseDuration, parseInstant } from "./time.ts";
import { ProtobufError, type Reader, type ReverseWriter, wireBytes, wireVarint } from "./wire.ts";

/** Writes the fields of the message, highest number first; the caller adds tag and length. */
export type SpecialEncoder = (writer: ReverseWriter, value: unknown) => void;
/** Reads the message's fields up to `stop`. Undefined for a zero time. */
export type SpecialDecoder = (reader: Reader, stop: number) => unknown;

export function specialEncoder(schema: SpecialSchema | RawSchema): SpecialEncoder {
  switch (schema.format) {
    case "time":
      return (writer, value) => writeInstant(writer, value, false);
    case "microTime":
      return (writer, value) => writeInstant(writer, value, true);
    case "duration":
      return (writer, value) => {
        writer.int64(parseDuration(String(value)) ?? 0n);
        writer.tag(1, wireVarint);
      };
    case "quantity":
      return (writer, value) => {
        writer.string(String(value));
        writer.tag(1, wireBytes);
      };
    case "intOrString":
      return writeIntOrString;
    default:
      return (writer, value) => {
        writer.bytes(value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value)));
        writer.tag(1, wireBytes);
      };
  }
}

/** A zero time is an empty message. */
function writeInstant(writer: ReverseWriter, value: unknown, micro: boolean): void {
  const instant = typeof value === "string" ? parseInstant(value) : undefined;
  if (instant === undefined) return;
  writer.int64(micro ? Math.trunc(instant.nanos / 1000) * 1000 : 0);
  writer.tag(2, wireVarint);
  writer.int64(instant.seconds);
  writer.tag(1, wireVarint);
}

function writeIntOrString(writer: ReverseWriter, value: unknown): void {
  const text = typeof value === "string";
  writer.string(text ? value : "");
  writer.tag(3, wireBytes);
  writer.int64(text ? 0 : Number(value));
  writer.tag(2, wireVarint);
  writer.uint32(text ? 1 : 0);
  writer.tag(1, wireVarint);
}

export function specialDecoder(schema: SpecialSchema | RawSchema): SpecialDecoder {
  switch (schema.format) {
    case "time":
      return (reader, stop) => readInstant(reader, stop, false);
    case "microTime":
      return (reader, stop) => readInstant(reader, stop, true);
    case "duration":
      return (reader, stop) => {
        let nanos = 0n;
        eachField(reader, stop, { 1: () => (nanos = BigInt.asIntN(64, reader.uint64())) });
        return formatDuration(nanos);
      };
    case "quantity":
      return (reader, stop) => {
        let text = "";
        eachField(reader, stop, { 1: () => (text = reader.string(stop)) });
        const canonical = text === "" ? "0" : canonicalQuantity(text, schema.milli);
        if (canonical === undefined) throw new ProtobufError(quantityHint);
        return canonical;
      };
    case "intOrString":
      return readIntOrString;
    default:
      return readRaw;
  }
}

function readInstant(reader: Reader, stop: number, micro: boolean): string | undefined {
  if (reader.position === stop) return undefined;
  let seconds = 0;
  let nanos = 0;
  eachField(reader, stop, { 1: () => (seconds = reader.int64()), 2: () => (nanos = reader.int64()) });
  const instant: Instant = { seconds, nanos };
  // Years outside 0–9999 cannot be written as RFC 3339.
  if (seconds < -62167219200 || seconds > 253402300799) throw new ProtobufError(`time ${seconds} is out of range`);
  return formatInstant(instant, micro);
}

function readIntOrString(reader: Reader, stop: number): number | string {
  let type = 0;
  let number = 0;
  let text = "";
  eachField(reader, stop, {
    1: () => (type = reader.int64()),
    2: () => (number = reader.int64() | 0),
    3: () => (text = reader.string(stop)),
  });
  return type === 1 ? text : number;
}

/** Raw members hold JSON; other bytes (a nested protobuf object) are kept as they are. */
function readRaw(reader: Reader, stop: number): unknown {
  let bytes: Buffer = Buffer.alloc(0);
  eachField(reader, stop, { 1: () => (bytes = reader.bytes(stop)) });
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return bytes;
  }
}

function eachField(reader: Reader, stop: number, read: Readonly<Record<number, () => unknown>>): void {
  while (reader.position < stop) {
    const tag = reader.uint32();
    const field = read[tag >>> 3];
    if (field === undefined) reader.skip(tag & 7, stop);
    else field();
    if (reader.position > stop) throw new ProtobufError("unexpected EOF");
  }
}
