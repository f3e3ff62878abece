/** Scalars that protobuf encodes as messages: times, durations, quantities, int-or-string, raw JSON. */
import { Buffer } from "node:buffer";
import { parseExact, stringifyExact } from "../json/exact-numbers.ts";
import { escapeHtml } from "../json/html-escape.ts";
import type { RawSchema, SpecialSchema } from "../schema.ts";
import { parseFieldsV1, stringifyFieldsV1 } from "../value/fields-v1-cache.ts";
import { canonicalizeQuantity, explainQuantityError } from "../value/quantity.ts";
import { formatDuration, formatInstant, parseDuration, parseInstant } from "../value/time.ts";
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
    case "fieldsV1":
      return (writer, value) => {
        if (value instanceof Uint8Array) writer.bytes(value);
        else writer.string(stringifyFieldsV1(value));
        writer.tag(1, wireBytes);
      };
    default:
      // As Go's encoder writes it: kubectl compares the bytes of revisions with its own.
      return (writer, value) => {
        writer.bytes(value instanceof Uint8Array ? value : Buffer.from(escapeHtml(stringifyExact(value))));
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
      return readDuration;
    case "quantity":
      return (reader, stop) => readQuantity(reader, stop, schema.milli);
    case "intOrString":
      return readIntOrString;
    case "fieldsV1":
      return readFieldSet;
    default:
      return readRaw;
  }
}

function readInstant(reader: Reader, stop: number, micro: boolean): string | undefined {
  if (reader.position === stop) return undefined;
  let seconds = 0;
  let nanos = 0;
  while (reader.position < stop) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) seconds = reader.int64();
    else if (tag >>> 3 === 2) nanos = reader.int64();
    else skip(reader, tag, stop);
  }
  checkEnd(reader, stop);
  // Years outside 0–9999 cannot be written as RFC 3339.
  if (seconds < -62167219200 || seconds > 253402300799) throw new ProtobufError(`time ${seconds} is out of range`);
  return formatInstant({ seconds, nanos }, micro);
}

function readIntOrString(reader: Reader, stop: number): number | string {
  let type = 0;
  let number = 0;
  let text = "";
  while (reader.position < stop) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) type = reader.int64();
    else if (tag >>> 3 === 2) number = reader.int64() | 0;
    else if (tag >>> 3 === 3) text = reader.string(stop);
    else skip(reader, tag, stop);
  }
  checkEnd(reader, stop);
  return type === 1 ? text : number;
}

function readQuantity(reader: Reader, stop: number, milli: boolean | undefined): string {
  let text = "";
  while (reader.position < stop) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) text = reader.string(stop);
    else skip(reader, tag, stop);
  }
  checkEnd(reader, stop);
  const canonical = text === "" ? "0" : canonicalizeQuantity(text, milli);
  if (canonical === undefined) throw new ProtobufError(explainQuantityError(text));
  return canonical;
}

function readDuration(reader: Reader, stop: number): string {
  let nanos = 0n;
  while (reader.position < stop) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) nanos = BigInt.asIntN(64, reader.uint64());
    else skip(reader, tag, stop);
  }
  checkEnd(reader, stop);
  return formatDuration(nanos);
}

/** Raw members contain JSON; other bytes (a nested protobuf object) are kept unchanged. */
function readRaw(reader: Reader, stop: number): unknown {
  const bytes = readOnlyBytes(reader, stop);
  if (bytes === undefined) return undefined;
  try {
    return parseExact(bytes.toString("utf8"));
  } catch {
    return Buffer.from(bytes);
  }
}

function readFieldSet(reader: Reader, stop: number): unknown {
  const bytes = readOnlyBytes(reader, stop);
  if (bytes === undefined) return undefined;
  try {
    return parseFieldsV1(bytes.toString("utf8"));
  } catch {
    return Buffer.from(bytes);
  }
}

/** A view of field 1; undefined when it is empty. */
function readOnlyBytes(reader: Reader, stop: number): Buffer | undefined {
  let bytes: Buffer | undefined;
  while (reader.position < stop) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) bytes = reader.view(stop);
    else skip(reader, tag, stop);
  }
  checkEnd(reader, stop);
  return bytes === undefined || bytes.length === 0 ? undefined : bytes;
}

function skip(reader: Reader, tag: number, stop: number): void {
  reader.skip(tag & 7, stop);
}

function checkEnd(reader: Reader, stop: number): void {
  if (reader.position > stop) throw new ProtobufError("unexpected EOF");
}
