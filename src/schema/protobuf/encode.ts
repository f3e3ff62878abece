/**
 * Protobuf by the numbers of the schema. Kubernetes messages (`proto2`) always carry scalars and embedded messages that
 * are no pointers, as gogo's encoder does, and maps in the order of their keys; gRPC messages (`proto3`) leave zeros
 * out, pack repeated numbers, and are decoded with their zeros filled in.
 */
import { Buffer } from "node:buffer";
import { isEmpty, zeroOf } from "../decode/decode.ts";
import { depthMax } from "../decode/walk.ts";
import { eitherMessageOf, fromEitherMessage, toEitherMessage } from "./either.ts";
import { setMember, sortedNames } from "../value/plain-object.ts";
import { specialDecoder, specialEncoder } from "./special-types.ts";
import { type Field, type Infer, type ListSchema, type ObjectSchema, type Schema, schemaOf } from "../schema.ts";
import { type VisitMembers, type Visitor, visitMembers } from "../value/visit-members.ts";
import {
  ProtobufError,
  Reader,
  ReverseWriter,
  tagOf,
  wireBytes,
  wireFixed32,
  wireFixed64,
  wireVarint,
} from "./wire.ts";

export function encodeProtobuf(schema: ObjectSchema, value: unknown): Uint8Array {
  const writer = new ReverseWriter();
  encoderOf(schema)(writer, value ?? {});
  return writer.take();
}

/** Throws a `ProtobufError` when the bytes are no message of the schema. Unknown fields are skipped. */
export function decodeProtobuf<S extends ObjectSchema>(schema: S, bytes: Uint8Array): Infer<S> {
  const reader = new Reader(bytes);
  const target: Record<string, unknown> = {};
  messageDecoderOf(schema)(reader, reader.end, target, 0);
  return target as Infer<S>;
}

/** Writes a value without tag and length (a message's fields, a string with its length). */
type Encoder = (writer: ReverseWriter, value: never) => void;
type MessageEncoder = (writer: ReverseWriter, value: unknown) => void;

const encoders = new WeakMap<ObjectSchema, MessageEncoder>();

function encoderOf(schema: ObjectSchema): MessageEncoder {
  let encoder = encoders.get(schema);
  if (encoder === undefined) {
    // Registered before its fields are compiled, so that recursive messages come to an end.
    let visit: VisitMembers<ReverseWriter> | undefined;
    encoder = (writer, value) => {
      visit ??= visitMembers(fieldEncoders(schema));
      visit(writer, value as Readonly<Record<string, unknown>>);
    };
    encoders.set(schema, encoder);
  }
  return encoder;
}

/** Highest number first: the writer goes backwards. */
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
  if (syntax === "proto2") return writesAlways(name, write, absentValue(schema));
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

function writesAlways(name: string, write: MessageEncoder, absent: unknown): Visitor<ReverseWriter> {
  return absent === undefined ? { name, visit: write } : { name, visit: write, absent: absentWriter(write, absent) };
}

/** What stands for an absent value is the same bytes each time. */
function absentWriter(write: MessageEncoder, absent: unknown): (writer: ReverseWriter) => void {
  // Encoded at the first use: a recursive type cannot be while it is being compiled.
  if (typeof absent === "object") {
    let bytes: Uint8Array | undefined;
    return (writer) => {
      bytes ??= bytesOf(write, absent);
      writer.raw(bytes);
    };
  }
  const bytes = bytesOf(write, absent);
  const [first = 0, second = 0] = bytes;
  return bytes.length === 2 ? (writer) => writer.pair(first, second) : (writer) => writer.raw(bytes);
}

function bytesOf(write: MessageEncoder, value: unknown): Uint8Array {
  const writer = new ReverseWriter();
  write(writer, value);
  return writer.take();
}

function isZero(value: unknown, zero: unknown): boolean {
  return value === zero || (value instanceof Uint8Array && value.length === 0);
}

/** What proto2 writes where a member that is no pointer is absent; undefined writes nothing. */
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
    for (let place = list.length - 1; place >= 0; place--) {
      encode(writer, list[place] as never);
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
    for (let place = names.length - 1; place >= 0; place--) {
      const member = names[place]!;
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

function wireTypeOf(schema: Schema): number {
  switch (schema.type) {
    case "integer":
    case "boolean":
    case "enum":
      return wireVarint;
    case "number":
      return schema.width === "double" ? wireFixed64 : wireFixed32;
    default:
      return wireBytes;
  }
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
    case "object": {
      const encode = encoderOf(schema);
      return (writer, value: unknown) => {
        const before = writer.length;
        encode(writer, value);
        writer.uint32(writer.length - before);
      };
    }
    case "special":
    case "raw": {
      const encode = specialEncoder(schema);
      return (writer, value: unknown) => {
        const before = writer.length;
        encode(writer, value);
        writer.uint32(writer.length - before);
      };
    }
    case "list": {
      const encode = encoderOf(listMessage(schema));
      return (writer, items: readonly unknown[]) => {
        const before = writer.length;
        encode(writer, { items });
        writer.uint32(writer.length - before);
      };
    }
    case "either": {
      const encode = encoderOf(eitherMessageOf(schema));
      return (writer, value: unknown) => {
        const before = writer.length;
        encode(writer, toEitherMessage(value));
        writer.uint32(writer.length - before);
      };
    }
    default:
      throw new TypeError(`a ${schema.type} cannot stand inside a list or a map of a message`);
  }
}

/** A list inside a list or a map is a message of its own there: `ExtraValue` with its `items`. */
function listMessage(schema: ListSchema): ObjectSchema {
  const items: Field = { schema, number: 1, presence: "optional" };
  return { type: "object", name: "items", fields: { items }, syntax: "proto2" };
}

/** Reads one value; the reader stands behind the tag. */
type Decoder = (reader: Reader, end: number, depth: number) => unknown;
type MessageDecoder = (reader: Reader, end: number, target: Record<string, unknown>, depth: number) => void;

const decoders = new WeakMap<ObjectSchema, MessageDecoder>();

type FieldDecoder = (reader: Reader, type: number, end: number, target: Record<string, unknown>, depth: number) => void;

function messageDecoderOf(schema: ObjectSchema): MessageDecoder {
  let decoder = decoders.get(schema);
  if (decoder === undefined) {
    decoder = compileDecoder(schema);
    decoders.set(schema, decoder);
  }
  return decoder;
}

function compileDecoder(schema: ObjectSchema): MessageDecoder {
  let fields: ReadonlyMap<number, FieldDecoder> | undefined;
  let zeros: readonly (readonly [string, () => unknown])[] | undefined;
  return (reader, end, target, depth) => {
    if (depth > depthMax) throw new ProtobufError("message is nested too deeply");
    fields ??= new Map(
      Object.entries(schema.fields).map(([name, field]) => [field.number, fieldDecoder(name, field, schema.syntax)]),
    );
    zeros ??= zerosOf(schema);
    while (reader.position < end) {
      const tag = reader.tag();
      const number = tag >>> 3;
      const decode = fields.get(number);
      if (decode === undefined) reader.skip(tag & 7, end);
      else decode(reader, tag & 7, end, target, depth);
      if (reader.position > end) throw new ProtobufError("unexpected EOF");
    }
    for (const [name, zero] of zeros) target[name] ??= zero();
  };
}

/** What stands for members that are not on the wire: every scalar of proto3, required lists and maps of proto2. */
function zerosOf(schema: ObjectSchema): readonly (readonly [string, () => unknown])[] {
  return Object.entries(schema.fields).flatMap(([name, field]) => {
    const target = schemaOf(field);
    if (schema.syntax === "proto2") {
      return field.presence === "required" &&
        field.nilable !== true &&
        zeroOf(target) !== null &&
        target.type !== "object"
        ? [[name, () => zeroOf(target)] as const]
        : [];
    }
    const scalar = ["string", "integer", "number", "boolean", "bytes", "enum"].includes(target.type);
    return scalar && field.presence !== "pointer" && field.oneOf === undefined
      ? [[name, () => zeroOf(target)] as const]
      : [];
  });
}

function fieldDecoder(name: string, field: Field, syntax: ObjectSchema["syntax"]): FieldDecoder {
  const schema = schemaOf(field);
  switch (schema.type) {
    case "object": {
      const decode = messageDecoderOf(schema);
      const member = { name, field, schema };
      return (reader, type, end, target, depth) => {
        expect(type, wireBytes, name);
        const stop = reader.delimited(end);
        // A message that comes in several pieces is merged; members of an embedded struct are the parent's.
        if (field.inline !== true) target[name] ??= {};
        const into = field.inline === true ? target : (target[name] as Record<string, unknown>);
        decode(reader, stop, into, depth + 1);
        if (syntax === "proto2" && field.inline !== true && isEmpty(member, into)) delete target[name];
      };
    }
    case "list":
      return listDecoder(name, schema.items);
    case "map":
      return mapDecoder(name, schema.values);
    default: {
      const decode = valueDecoder(schema);
      const wireType = wireTypeOf(schema);
      const member = { name, field, schema };
      return (reader, type, end, target, depth) => {
        expect(type, wireType, name);
        const value = decode(reader, end, depth);
        if (value !== undefined && !(syntax === "proto2" && isEmpty(member, value))) target[name] = value;
      };
    }
  }
}

function expect(found: number, wanted: number, name: string): void {
  if (found !== wanted) throw new ProtobufError(`wrong wireType = ${found} for field ${name}`);
}

function listDecoder(name: string, items: Schema): FieldDecoder {
  const decode = valueDecoder(items);
  const wireType = wireTypeOf(items);
  return (reader, type, end, target, depth) => {
    target[name] ??= [];
    const list = target[name] as unknown[];
    if (type === wireBytes && wireType !== wireBytes) {
      const stop = reader.delimited(end);
      while (reader.position < stop) list.push(decode(reader, stop, depth));
      return;
    }
    expect(type, wireType, name);
    list.push(decode(reader, end, depth));
  };
}

function mapDecoder(name: string, values: Schema): FieldDecoder {
  const decode = valueDecoder(values);
  const wireType = wireTypeOf(values);
  return (reader, type, end, target, depth) => {
    expect(type, wireBytes, name);
    const stop = reader.delimited(end);
    target[name] ??= {};
    const map = target[name] as Record<string, unknown>;
    let member = "";
    let value: unknown;
    while (reader.position < stop) {
      const tag = reader.uint32();
      if (tag === ((1 << 3) | wireBytes)) member = reader.string(stop);
      else if (tag === ((2 << 3) | wireType)) value = decode(reader, stop, depth);
      else reader.skip(tag & 7, stop);
    }
    setMember(map, member, value ?? zeroOf(values));
  };
}

function valueDecoder(schema: Schema): Decoder {
  switch (schema.type) {
    case "string":
      return (reader, end) => reader.string(end);
    case "boolean":
      return (reader) => reader.int64() !== 0;
    case "integer":
      if (schema.as === "bigint") {
        return schema.width === "uint64" ? (reader) => reader.uint64() : (reader) => BigInt.asIntN(64, reader.uint64());
      }
      if (schema.width === "int32") return (reader) => reader.int64() | 0;
      if (schema.width === "uint32") return (reader) => reader.int64() >>> 0;
      return (reader) => reader.int64();
    case "number":
      return schema.width === "double" ? (reader) => reader.double() : (reader) => reader.float();
    case "enum": {
      const names = new Map(Object.entries(schema.numbers).map(([name, number]) => [number, name]));
      return (reader) => {
        const number = reader.int64() | 0;
        return names.get(number) ?? String(number);
      };
    }
    case "bytes":
      return schema.as === "binary"
        ? (reader, end) => reader.bytes(end)
        : (reader, end) => reader.bytes(end).toString("base64");
    case "object": {
      const decode = messageDecoderOf(schema);
      return (reader, end, depth) => {
        const message: Record<string, unknown> = {};
        decode(reader, reader.delimited(end), message, depth + 1);
        return message;
      };
    }
    case "special":
    case "raw": {
      const decode = specialDecoder(schema);
      return (reader, end) => decode(reader, reader.delimited(end));
    }
    case "list": {
      const decode = messageDecoderOf(listMessage(schema));
      return (reader, end, depth) => {
        const message: { items?: readonly unknown[] } = {};
        decode(reader, reader.delimited(end), message, depth + 1);
        return message.items ?? [];
      };
    }
    case "either": {
      const decode = messageDecoderOf(eitherMessageOf(schema));
      return (reader, end, depth) => {
        const message: Record<string, unknown> = {};
        decode(reader, reader.delimited(end), message, depth + 1);
        return fromEitherMessage(schema, message);
      };
    }
    default:
      throw new TypeError(`a ${schema.type} cannot stand inside a list or a map of a message`);
  }
}
