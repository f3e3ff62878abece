/** CEL values over JSON: views that convert members on access. */
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { memberOf } from "../../schema/members.ts";
import type { ListSchema, ObjectSchema, Schema, StringSchema } from "../../schema/schema.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { dynType, type Type } from "../values/types.ts";
import { equal, fail, List, MapValue, type Value } from "../values/value.ts";
import { parseDurationFormat } from "./duration-format.ts";
import { unescapeName } from "./escape.ts";
import { celTypeOf } from "./schema-type.ts";

type Json = Readonly<Record<string, unknown>>;

/** A value that does not match its schema fails on access. */
export function toCelValue(schema: Schema, value: unknown): Value {
  if (value === null || value === undefined) {
    return schema.nullable === true ? null : fail("invalid data, got null for schema with nullable=false");
  }
  switch (schema.type) {
    case "string":
      return toFormattedValue(schema, value);
    case "enum":
      return requireString(value);
    case "integer":
      return toInteger(value);
    case "number":
      return typeof value === "number" || typeof value === "bigint" ? Number(value) : failMismatch("float", value);
    case "boolean":
      return typeof value === "boolean" ? value : failMismatch("bool", value);
    case "bytes":
      return value instanceof Uint8Array ? value : toBytes(requireString(value));
    case "special":
      return toSpecialValue(schema.format, value);
    case "raw":
    case "either":
      return toDynamicCelValue(value);
    case "list":
      return toList(schema, value);
    case "map":
      return isPlainObject(value) ? new JsonMap(value, () => schema.values) : failMismatch("a map", value);
    case "object":
      return isPlainObject(value) ? new JsonObject(value, schema) : failMismatch("a map", value);
    default:
      return schema satisfies never;
  }
}

/** Converts JSON without a schema. Integral numbers become ints. */
export function toDynamicCelValue(value: unknown): Value {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return new JsonList(value, toDynamicCelValue);
  return isPlainObject(value) ? new JsonMap(value, () => undefined) : fail("unsupported value");
}

function convert(schema: Schema | undefined, value: unknown): Value {
  return schema === undefined ? toDynamicCelValue(value) : toCelValue(schema, value);
}

function failMismatch(expected: string, value: unknown): never {
  const found = Array.isArray(value) ? "array" : typeof value;
  return fail(`invalid data, expected ${expected}, got ${found}`);
}

function requireString(value: unknown): string {
  return typeof value === "string" ? value : failMismatch("string", value);
}

function toInteger(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  return typeof value === "number" && Number.isInteger(value) ? BigInt(value) : failMismatch("int", value);
}

function toFormattedValue(schema: StringSchema, value: unknown): Value {
  const text = requireString(value);
  switch (schema.rules?.format) {
    case "byte":
      return toBytes(text);
    case "duration": {
      const nanos = parseDurationFormat(text);
      return nanos === undefined ? fail(`Invalid duration ${text}`) : new Duration(nanos);
    }
    case "date":
      return Timestamp.parse(`${text}T00:00:00Z`) ?? fail(`Invalid date formatted string ${text}`);
    case "date-time":
      return toTimestamp(text);
    default:
      return text;
  }
}

function toBytes(text: string): Uint8Array {
  return Buffer.from(text, "base64");
}

function toTimestamp(text: string): Timestamp {
  return Timestamp.parse(text) ?? fail(`Invalid date-time formatted string ${text}`);
}

function toSpecialValue(format: "time" | "microTime" | "duration" | "quantity" | "intOrString", value: unknown): Value {
  if (format === "time" || format === "microTime") return toTimestamp(requireString(value));
  if (typeof value === "string") return value;
  if (format === "intOrString" && typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  return format === "quantity" && typeof value === "number" ? String(value) : failMismatch("string", value);
}

/** A map over JSON, which converts members on each access. */
class JsonMap extends MapValue {
  readonly type: Type = { kind: "map", key: { kind: "string" }, value: dynType };
  readonly json: Json;
  readonly #schemaOf: (name: string) => Schema | undefined;

  constructor(json: Json, schemaOf: (name: string) => Schema | undefined) {
    super();
    this.json = json;
    this.#schemaOf = schemaOf;
  }

  get size(): number {
    return Object.keys(this.json).length;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string" || !Object.hasOwn(this.json, key)) return undefined;
    return convert(this.#schemaOf(key), this.json[key]);
  }

  override has(key: Value): boolean {
    return typeof key === "string" && Object.hasOwn(this.json, key);
  }

  keys(): Iterable<Value> {
    return Object.keys(this.json);
  }
}

/** An object with declared members: null is absent, and names can be escaped. */
class JsonObject extends MapValue {
  readonly json: Json;
  readonly #schema: ObjectSchema;

  constructor(json: Json, schema: ObjectSchema) {
    super();
    this.json = json;
    this.#schema = schema;
  }

  get type(): Type {
    return celTypeOf(this.#schema) ?? dynType;
  }

  get size(): number {
    return Object.keys(this.json).length;
  }

  get(key: Value): Value | undefined {
    const name = this.#nameOf(key);
    return name === undefined ? undefined : convert(this.#schemaOf(name), this.json[name]);
  }

  override has(key: Value): boolean {
    return this.#nameOf(key) !== undefined;
  }

  keys(): Iterable<Value> {
    return Object.keys(this.json);
  }

  /** Compares members without a schema as dynamic values. */
  override equals(other: MapValue): boolean {
    if (!(other instanceof JsonObject)) return super.equals(other);
    if (this.size !== other.size) return false;
    return Object.keys(this.json).every((name) => {
      if (memberOf(this.#schema, name) === undefined) {
        return equal(toDynamicCelValue(this.json[name]), toDynamicCelValue(other.json[name]));
      }
      const [mine, theirs] = [this.get(name), other.get(name)];
      if (mine === undefined || theirs === undefined) return mine === theirs;
      return equal(mine, theirs);
    });
  }

  /** The unescaped name of a member that is present. */
  #nameOf(key: Value): string | undefined {
    const name = typeof key === "string" ? unescapeName(key) : undefined;
    if (name === undefined || !Object.hasOwn(this.json, name)) return undefined;
    const value = this.json[name];
    return value === null || value === undefined ? undefined : name;
  }

  #schemaOf(name: string): Schema | undefined {
    return memberOf(this.#schema, name)?.schema;
  }
}

function toList(schema: ListSchema, value: unknown): Value {
  if (!Array.isArray(value)) return failMismatch("an array", value);
  const item = (each: unknown): Value => toCelValue(schema.items, each);
  if (schema.listType === "atomic") return new JsonList(value, item);
  const keys = schema.listType === "map" ? (schema.mapKeys ?? []) : undefined;
  return new KeyedList(value, item, (each) => identityOf(each, keys));
}

class JsonList extends List {
  readonly json: readonly unknown[];
  readonly convert: (item: unknown) => Value;

  constructor(json: readonly unknown[], convert: (item: unknown) => Value) {
    super();
    this.json = json;
    this.convert = convert;
  }

  get size(): number {
    return this.json.length;
  }

  at(index: number): Value {
    return this.convert(this.json[index]);
  }
}

/** The identity of an item of a set or map list. */
function identityOf(item: unknown, keys: readonly string[] | undefined): string {
  if (keys === undefined) return stringifyExact(item);
  return stringifyExact(isPlainObject(item) ? keys.map((key) => item[key] ?? null) : item);
}

/** A set or map list: equality ignores the order, and `+` merges. */
class KeyedList extends JsonList {
  readonly #identityOf: (item: unknown) => string;

  constructor(json: readonly unknown[], convert: (item: unknown) => Value, identityOf: (item: unknown) => string) {
    super(json, convert);
    this.#identityOf = identityOf;
  }

  override equals(other: List): boolean {
    if (this.size !== other.size) return false;
    if (!(other instanceof JsonList)) return super.equals(other);
    const mine = new Map(this.json.map((item) => [this.#identityOf(item), item]));
    return other.json.every((item) => {
      const identity = this.#identityOf(item);
      return mine.has(identity) && equal(this.convert(mine.get(identity)), other.convert(item));
    });
  }

  /** Items of the second list replace those with the same identity; new ones are appended. */
  override concat(other: List): List {
    if (!(other instanceof JsonList)) return super.concat(other);
    const merged = new Map(this.json.map((item) => [this.#identityOf(item), item]));
    for (const item of other.json) merged.set(this.#identityOf(item), item);
    return new KeyedList([...merged.values()], this.convert, this.#identityOf);
  }
}
