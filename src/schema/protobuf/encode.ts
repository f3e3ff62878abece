/**
 * Encodes messages by the field numbers of their schema. Kubernetes messages (`proto2`) always carry scalars and
 * embedded messages that are not pointers, and maps sorted by key, as gogo/protobuf does; gRPC messages (`proto3`) omit
 * zeros and pack repeated numbers.
 */
import { Buffer } from "node:buffer";
import { type Field, type ObjectSchema, type Schema, schemaOf } from "../schema.ts";
import { sortedNames } from "../value/plain-object.ts";
import { type VisitMembers, type Visitor, visitMembers } from "../value/visit-members.ts";
import { zeroOf } from "../zero-value.ts";
import { eitherMessageOf, toEitherMessage } from "./either.ts";
import { listMessage, wireTypeOf } from "./field-layout.ts";
import { specialEncoder } from "./special-types.ts";
import { ReverseWriter, tagOf, wireBytes } from "./wire.ts";

export function encodeProtobuf(schema: ObjectSchema, value: unknown): Uint8Array {
  const writer = new ReverseWriter();
  encoderOf(schema)(writer, value ?? {});
  return writer.take();
}

/** Writes a value without its tag. */
type Encoder = (writer: ReverseWriter, value: never) => void;
type MessageEncoder = (writer: ReverseWriter, value: unknown) => void;

const encoders = new WeakMap<ObjectSchema, MessageEncoder>();

function encoderOf(schema: ObjectSchema): MessageEncoder {
  let encoder = encoders.get(schema);
  if (encoder === undefined) {
    // Registered before its fields are compiled, so that compiling recursive messages ends.
    let visit: VisitMembers<ReverseWriter> | undefined;
    encoder = (writer, value) => {
      visit ??= visitMembers(fieldEncoders(schema));
      visit(writer, value as Readonly<Record<string, unknown>>);
    };
    encoders.set(schema, encoder);
  }
  return encoder;
}

/** Highest number first, since the writer writes backwards. */
function fieldEncoders(schema: ObjectSchema): readonly Visitor<ReverseWriter>[] {
  return Object.entries(schema.fields)
    .filter(([, field]) => field.number > 0)
    .sort(([, a], [, b]) => b.number - a.number)
    .map(([name, field]) => fieldEncoder(name, field, schema.syntax));
}

function fieldEncoder(name: string, field: Field, syntax: ObjectSchema["syntax"]): Visitor<ReverseWriter> {
  const schema = schemaOf(field);
  const { number } = field;
  if (field.inline === true && schema.type === "object") {
    const encode = encoderOf(schema);
    const tag = tagOf(number, wireBytes);
    return { name: undefined, visit: (writer, message) => writeMessage(writer, tag, encode, message) };
  }
  if (schema.type === "list") return { name, visit: listEncoder(number, schema.items, syntax) };
  if (schema.type === "map") return { name, visit: mapEncoder(number, schema.values) };
  const write = taggedEncoder(schema, tagOf(number, wireTypeOf(schema)));
  if (field.presence === "pointer" || field.nilable === true) return { name, visit: write };
  if (syntax === "proto2") return alwaysEncoder(name, write, absentValue(schema));
  if (field.oneOf !== undefined || schema.type === "object") return { name, visit: write };
  const zero = zeroOf(schema);
  return { name, visit: (writer, value) => isZero(value, zero) || write(writer, value) };
}

function taggedEncoder(schema: Schema, tag: number): MessageEncoder {
  if (schema.type === "string") {
    return (writer, value) => {
      writer.string(value as string);
      writer.uint32(tag);
    };
  }
  const encode = valueEncoder(schema) as MessageEncoder;
  return (writer, value) => {
    encode(writer, value);
    writer.uint32(tag);
  };
}

function alwaysEncoder(name: string, write: MessageEncoder, absent: unknown): Visitor<ReverseWriter> {
  return absent === undefined ? { name, visit: write } : { name, visit: write, absent: zeroWriter(write, absent) };
}

/** Writes the constant bytes of an absent value. */
function zeroWriter(write: MessageEncoder, absent: unknown): (writer: ReverseWriter) => void {
  // Encoded at the first use, since the encoder of a recursive type is not complete yet.
  if (typeof absent === "object") {
    let bytes: Uint8Array | undefined;
    return (writer) => {
      bytes ??= encodeToBytes(write, absent);
      writer.raw(bytes);
    };
  }
  const bytes = encodeToBytes(write, absent);
  const [first = 0, second = 0] = bytes;
  return bytes.length === 2 ? (writer) => writer.pair(first, second) : (writer) => writer.raw(bytes);
}

function encodeToBytes(write: MessageEncoder, value: unknown): Uint8Array {
  const writer = new ReverseWriter();
  write(writer, value);
  return writer.take();
}

function isZero(value: unknown, zero: unknown): boolean {
  return value === zero || (value instanceof Uint8Array && value.length === 0);
}

/** The value that proto2 writes for an absent member that is not a pointer; undefined writes nothing. */
function absentValue(schema: Schema): unknown {
  switch (schema.type) {
    case "bytes":
    case "raw":
      return undefined;
    case "special":
      return schema.format === "time" || schema.format === "microTime" ? "" : zeroOf(schema);
    default:
      return zeroOf(schema);
  }
}

function writeMessage(writer: ReverseWriter, tag: number, encode: MessageEncoder, message: unknown): void {
  const before = writer.length;
  encode(writer, message);
  writer.uint32(writer.length - before);
  writer.uint32(tag);
}

function listEncoder(number: number, items: Schema, syntax: ObjectSchema["syntax"]): MessageEncoder {
  const encode = valueEncoder(items);
  const packed = syntax === "proto3" && wireTypeOf(items) !== wireBytes;
  const tag = tagOf(number, packed ? wireBytes : wireTypeOf(items));
  return (writer, value) => {
    const list = value as readonly never[];
    if (list.length === 0) return;
    const before = writer.length;
    for (let index = list.length - 1; index >= 0; index--) {
      encode(writer, list[index] as never);
      if (!packed) writer.uint32(tag);
    }
    if (packed) {
      writer.uint32(writer.length - before);
      writer.uint32(tag);
    }
  };
}

function mapEncoder(number: number, values: Schema): MessageEncoder {
  const encode = valueEncoder(values);
  const tag = tagOf(number, wireBytes);
  const nameTag = tagOf(1, wireBytes);
  const valueTag = tagOf(2, wireTypeOf(values));
  return (writer, value) => {
    const map = value as Readonly<Record<string, never>>;
    const names = sortedNames(map);
    for (let index = names.length - 1; index >= 0; index--) {
      const member = names[index]!;
      const each = map[member];
      if (each === undefined) continue;
      const before = writer.length;
      encode(writer, each);
      writer.uint32(valueTag);
      writer.string(member);
      writer.uint32(nameTag);
      writer.uint32(writer.length - before);
      writer.uint32(tag);
    }
  };
}

function valueEncoder(schema: Schema): Encoder {
  switch (schema.type) {
    case "string":
      return (writer, value: string) => writer.string(value);
    case "boolean":
      return (writer, value: boolean) => writer.uint32(value ? 1 : 0);
    case "integer":
      return (writer, value: number | bigint) => writer.int64(value);
    case "number":
      return schema.width === "double"
        ? (writer, value: number) => writer.double(value)
        : (writer, value: number) => writer.float(value);
    case "enum": {
      const { numbers } = schema;
      return (writer, value: string) =>
        writer.int64(Object.hasOwn(numbers, value) ? (numbers[value] ?? 0) : Number(value));
    }
    case "bytes":
      return (writer, value: string | Uint8Array) =>
        writer.bytes(typeof value === "string" ? Buffer.from(value, "base64") : value);
    case "object":
      return withLength(encoderOf(schema));
    case "special":
    case "raw":
      return withLength(specialEncoder(schema));
    case "list": {
      const encode = encoderOf(listMessage(schema));
      return withLength((writer, items) => encode(writer, { items }));
    }
    case "either": {
      const encode = encoderOf(eitherMessageOf(schema));
      return withLength((writer, value) => encode(writer, toEitherMessage(value)));
    }
    default:
      throw new TypeError(`${schema.type} is not supported in lists and maps of messages`);
  }
}

/** Writes the length before the message. */
function withLength(encode: MessageEncoder): MessageEncoder {
  return (writer, value) => {
    const before = writer.length;
    encode(writer, value);
    writer.uint32(writer.length - before);
  };
}
