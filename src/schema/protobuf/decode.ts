/**
 * Decodes messages by the field numbers of their schema. Absent scalars of gRPC messages (`proto3`) become zeros, as do
 * absent required scalars, lists and maps of Kubernetes messages (`proto2`).
 */
import { type Field, type Infer, type ObjectSchema, type Schema, schemaOf } from "../schema.ts";
import { depthMax } from "../value/limits.ts";
import { setMember } from "../value/plain-object.ts";
import { isEmpty, zeroOf } from "../zero-value.ts";
import { eitherMessageOf, fromEitherMessage } from "./either.ts";
import { listMessage, wireTypeOf } from "./field-layout.ts";
import { specialDecoder } from "./special-types.ts";
import { ProtobufError, Reader, type ReadOptions, wireBytes } from "./wire.ts";

/**
 * Throws a `ProtobufError` when the bytes are not a message of the schema. Skips unknown fields. Throws a
 * `TooManyValuesError` for more than `valuesMax` fields, items and map entries.
 */
export function decodeProtobuf<S extends ObjectSchema>(schema: S, bytes: Uint8Array, options?: ReadOptions): Infer<S> {
  const reader = new Reader(bytes, options);
  const target: Record<string, unknown> = {};
  messageDecoderOf(schema)(reader, reader.end, target, 0);
  return target as Infer<S>;
}

/** Reads one value; the reader is after the tag. */
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
      reader.countValue();
      const number = tag >>> 3;
      const decode = fields.get(number);
      if (decode === undefined) reader.skip(tag & 7, end);
      else decode(reader, tag & 7, end, target, depth);
      if (reader.position > end) throw new ProtobufError("unexpected EOF");
    }
    for (const [name, zero] of zeros) target[name] ??= zero();
  };
}

/** Zero values of absent members: every scalar of proto3; required scalars, lists and maps of proto2. */
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
        checkWireType(type, wireBytes, name);
        const stop = reader.delimited(end);
        // Repeated occurrences of a message merge; members of an embedded struct belong to the parent.
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
        checkWireType(type, wireType, name);
        const value = decode(reader, end, depth);
        if (value !== undefined && !(syntax === "proto2" && isEmpty(member, value))) target[name] = value;
      };
    }
  }
}

function checkWireType(found: number, wanted: number, name: string): void {
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
      for (; reader.position < stop; reader.countValue()) list.push(decode(reader, stop, depth));
      return;
    }
    checkWireType(type, wireType, name);
    list.push(decode(reader, end, depth));
  };
}

function mapDecoder(name: string, values: Schema): FieldDecoder {
  const decode = valueDecoder(values);
  const wireType = wireTypeOf(values);
  return (reader, type, end, target, depth) => {
    checkWireType(type, wireBytes, name);
    const stop = reader.delimited(end);
    target[name] ??= {};
    const map = target[name] as Record<string, unknown>;
    let member = "";
    let value: unknown;
    for (let tags = 1; reader.position < stop; tags++) {
      const tag = reader.uint32();
      // Key and value are one entry.
      if (tags > 2) reader.countValue();
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
      throw new TypeError(`${schema.type} is not supported in lists and maps of messages`);
  }
}
