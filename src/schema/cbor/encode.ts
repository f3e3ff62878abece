/**
 * Encodes values as CBOR (RFC 8949), as Kubernetes does: text as byte strings, members in the order of their encoded
 * names, every head in its shortest form (RFC 8949, 4.2.1), so that equal values have equal bytes.
 */
import { Buffer } from "node:buffer";
import { stringify } from "../json/encode.ts";
import { parseExact } from "../json/exact-numbers.ts";
import { memberOf } from "../members.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { CborError } from "./error.ts";
import { CborWriter } from "./writer.ts";

/** Marks the bytes as CBOR (tag 55799). */
const SELF_DESCRIBED = Buffer.from([0xd9, 0xd9, 0xf7]);

/** Encodes the same members as the JSON encoding. */
export function encodeCbor(schema: ObjectSchema, value: unknown): Buffer {
  return Buffer.concat([SELF_DESCRIBED, encodeItem(parseExact(stringify(schema, value)), schema)]);
}

/** Encodes any JSON value. Throws a `CborError` for values that JSON cannot represent. */
export function encodeCborValue(value: unknown): Buffer {
  return Buffer.concat([SELF_DESCRIBED, encodeItem(value, undefined)]);
}

function encodeItem(value: unknown, schema: Schema | undefined): Buffer {
  const writer = new CborWriter();
  writeItem(writer, value, schema);
  return writer.take();
}

function writeItem(writer: CborWriter, value: unknown, schema: Schema | undefined): void {
  switch (typeof value) {
    case "string":
      if (schema?.type === "bytes") writer.base64(value);
      else writer.text(value);
      return;
    case "number":
      if (!Number.isFinite(value)) throw new CborError(`${value} is not valid in JSON`);
      // Fields of type `number` are floats, whatever their value.
      if (Number.isSafeInteger(value) && schema?.type !== "number") writer.integer(value);
      else writer.real(value);
      return;
    case "bigint":
      writer.integer(value);
      return;
    case "boolean":
      writer.simple(value);
      return;
    case "object":
      if (value === null) writer.simple(null);
      else if (value instanceof Uint8Array) writer.bytes(value);
      else if (Array.isArray(value)) writeList(writer, value, schema?.type === "list" ? schema.items : undefined);
      else writeMembers(writer, value as Readonly<Record<string, unknown>>, schema);
      return;
    default:
      throw new CborError(`a ${typeof value} is not valid in JSON`);
  }
}

function writeList(writer: CborWriter, items: readonly unknown[], schema: Schema | undefined): void {
  writer.list(items.length);
  for (const item of items) writeItem(writer, item, schema);
}

function writeMembers(writer: CborWriter, value: Readonly<Record<string, unknown>>, schema: Schema | undefined): void {
  const members = Object.keys(value)
    .filter((name) => value[name] !== undefined)
    .map((name) => ({ name, encoded: encodeItem(name, undefined) }))
    .sort((a, b) => Buffer.compare(a.encoded, b.encoded));
  writer.map(members.length);
  for (const { name, encoded } of members) {
    writer.raw(encoded);
    writeItem(writer, value[name], memberSchema(schema, name));
  }
}

function memberSchema(schema: Schema | undefined, name: string): Schema | undefined {
  if (schema?.type === "object") return memberOf(schema, name)?.schema;
  return schema?.type === "map" ? schema.values : undefined;
}
