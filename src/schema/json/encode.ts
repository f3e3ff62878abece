/** JSON in both directions: strict parsing, and writing a value by its schema as Go's encoder would. */
import { Buffer } from "node:buffer";
import { canonicalJson } from "./canonical-json.ts";
import { depthMax } from "../decode/walk.ts";
import { htmlSafe } from "./html-escape.ts";
import { type Scan, scanJson, tooDeep } from "./scanner.ts";
import { type Member, membersOf } from "../members.ts";
import { hasNoMembers, sortedNames } from "../value/plain-object.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { textOfSet } from "../value/fields-v1-cache.ts";
import { type VisitMembers, type Visitor, visitMembers } from "../value/visit-members.ts";

export interface ParsedJson {
  readonly value: unknown;
  /** Paths of members that an object names more than once; the last one's value counts. */
  readonly duplicates: readonly string[];
  /** Present where there are duplicates: where they stand, and with all their values. */
  readonly scan?: Scan;
}

/**
 * Throws a `SyntaxError` with line and column when the bytes are no JSON or nest too deeply. Bytes that are not UTF-8
 * become U+FFFD, as in Go.
 */
export function parseJson(bytes: Uint8Array): ParsedJson {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const written = countMembers(buffer);
  const text = buffer.toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    scanJson(buffer, depthMax);
    throw error;
  }
  if (LONE.test(text)) value = wellFormed(value);
  // JSON.parse keeps the last of several members of one name: fewer members than colons means that some were lost.
  if (membersIn(value) === written) return { value, duplicates: [] };
  const scan = scanJson(buffer, depthMax);
  return { value, duplicates: scan.duplicates.map(({ path }) => path), scan };
}

/** Half of a surrogate pair, or what may be one. */
const LONE = /\\u[dD][89a-fA-F]/;

/** Escaped halves of characters become U+FFFD, as in Go. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.toWellFormed(), wellFormed(each)]));
}

/** The colons outside of strings. Throws when brackets nest deeper than `depthMax`. */
function countMembers(bytes: Buffer): number {
  let members = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case 0x22:
        at = stringEnd(bytes, at);
        break;
      case 0x3a:
        members++;
        break;
      case 0x5b:
      case 0x7b:
        if (++depth > depthMax) throw tooDeep(depthMax);
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
    }
  }
  return members;
}

/** The place of the quote that ends the string beginning at `start`; the end of the bytes when there is none. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== 0x22) at += bytes[at] === 0x5c ? 2 : 1;
  return at;
}

/** Throws for a number that is too large to be one: it would be written as null. */
function membersIn(value: unknown): number {
  if (typeof value !== "object" || value === null) {
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      throw new SyntaxError("json: cannot unmarshal number into Go value of type float64");
    }
    return 0;
  }
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += membersIn(item);
    return members;
  }
  for (const name in value) members += 1 + membersIn((value as Readonly<Record<string, unknown>>)[name]);
  return members;
}

export interface EncodeJsonOptions {
  /** Leaves out `kind` and `apiVersion` at the top. */
  readonly omitTypeMeta?: boolean;
}

/**
 * Members in the schema's order, map keys sorted. Empty optional members are left out; embedded structs and times that
 * are no pointers are written as `{}` and `null`, lists that Go must write as `null`.
 */
export function encodeJson(schema: ObjectSchema, value: unknown, options?: EncodeJsonOptions): Buffer {
  return Buffer.from(stringify(schema, value, options), "utf8");
}

/** The same as text. */
export function stringify(schema: ObjectSchema, value: unknown, options?: EncodeJsonOptions): string {
  const members = (value ?? {}) as Readonly<Record<string, unknown>>;
  return options?.omitTypeMeta === true ? bareWriterOf(schema)(members) : writerOf(schema)(members);
}

type Writer = (value: never) => string;
type ObjectWriter = (value: Readonly<Record<string, unknown>>) => string;

const writers = new WeakMap<Schema, Writer>();
const bareWriters = new WeakMap<ObjectSchema, ObjectWriter>();

function writerOf(schema: ObjectSchema): ObjectWriter;
function writerOf(schema: Schema): Writer;
function writerOf(schema: Schema): Writer {
  let writer = writers.get(schema);
  if (writer === undefined) {
    writer = compile(schema);
    writers.set(schema, writer);
  }
  return writer;
}

function bareWriterOf(schema: ObjectSchema): ObjectWriter {
  let writer = bareWriters.get(schema);
  if (writer === undefined) {
    writer =
      schema.unstructured === true
        ? bareJson
        : objectWriter(schema, (member) => member.name !== "kind" && member.name !== "apiVersion");
    bareWriters.set(schema, writer);
  }
  return writer;
}

function bareJson({ kind: _, apiVersion: __, ...members }: Readonly<Record<string, unknown>>): string {
  return canonicalJson(members);
}

function compile(schema: Schema): Writer {
  if (schema.unstructured === true) return canonicalJson;
  switch (schema.type) {
    case "object":
      return objectWriter(schema, () => true);
    case "list":
      return listWriter(schema);
    case "map":
      return mapWriter(schema);
    case "raw":
      if (schema.format === "fieldsV1") return rawText(textOfSet);
      return rawText((value) => htmlSafe(JSON.stringify(value) ?? "null"));
    case "bytes":
      return (value: string | Uint8Array) =>
        JSON.stringify(typeof value === "string" ? value : Buffer.from(value).toString("base64"));
    case "integer":
      return (value: number | bigint) => String(value);
    case "string":
    case "enum":
      return quoted;
    case "boolean":
      return (value: boolean) => (value ? "true" : "false");
    case "either":
      return (value: unknown) => {
        if (typeof value === "boolean") return String(value);
        const form = Array.isArray(value) ? schema.list : schema.object;
        return form === undefined || (isEmptyValue(value) && Array.isArray(value))
          ? "null"
          : writerOf(form.schema() as Schema)(value as never);
      };
    case "special":
      return (value: string | number) => (typeof value === "string" ? quoted(value) : String(value));
    default:
      return (value: unknown) => JSON.stringify(value) ?? "null";
  }
}

/** Bytes are what could not be read as JSON. */
function rawText(write: (value: unknown) => string): Writer {
  return (value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("utf8") || "null" : write(value);
}

const plainText = /^[\x20\x21\x23-\x25\x27-\x3b\x3d\x3f-\x5b\x5d-\x7e]*$/;

/** Text that needs no escapes is most text. */
function quoted(text: string): string {
  return plainText.test(text) ? `"${text}"` : htmlSafe(JSON.stringify(text));
}

function listWriter(schema: ListSchema): Writer {
  let item: Writer | undefined;
  return (items: readonly never[]) => {
    item ??= writerOf(schema.items);
    let text = "[";
    for (let place = 0; place < items.length; place++) {
      text += (place === 0 ? "" : ",") + item(items[place] as never);
    }
    return `${text}]`;
  };
}

function mapWriter(schema: MapSchema): Writer {
  let member: Writer | undefined;
  return (members: Readonly<Record<string, never>>) => {
    member ??= writerOf(schema.values);
    let text = "{";
    for (const name of sortedNames(members)) {
      const value = members[name];
      if (value !== undefined) text += `${text.length === 1 ? "" : ","}${quoted(name)}:${member(value)}`;
    }
    return `${text}}`;
  };
}

/** The members of an object as far as they are written. */
interface Sink {
  text: string;
}

function objectWriter(schema: ObjectSchema, keep: (member: Member) => boolean): ObjectWriter {
  let visit: VisitMembers<Sink> | undefined;
  return (value) => {
    visit ??= visitMembers(membersOf(schema).filter(keep).map(memberWriter));
    const sink: Sink = { text: "{" };
    visit(sink, value);
    return `${sink.text}}`;
  };
}

function memberWriter(member: Member): Visitor<Sink> {
  const prefix = `${JSON.stringify(member.name)}:`;
  const write: Writer = isNothingWhenEmpty(member) ? orNull(writerOf(member.schema)) : writerOf(member.schema);
  const writtenEmpty = isWrittenEmpty(member);
  const absent = absentText(member);
  const add = (sink: Sink, written: string): void => {
    sink.text += (sink.text.length === 1 ? "" : ",") + prefix + written;
  };
  const visit = (sink: Sink, value: unknown): void => {
    if (writtenEmpty || !isEmptyValue(value)) add(sink, write(value as never));
  };
  if (isLeftOut(member)) return { name: member.name, visit };
  return { name: member.name, visit, absent: (sink) => add(sink, absent() ?? "null") };
}

/** Protobuf cannot tell an empty list from none: what went through a store with an empty list comes out with none. */
function isNothingWhenEmpty({ field, schema }: Member): boolean {
  return schema.type === "list" && field.number !== 0 && field.presence !== "pointer";
}

function orNull(write: Writer): Writer {
  return (items: never) => ((items as readonly unknown[]).length === 0 ? "null" : write(items));
}

/** Whether an empty value of the member is written. */
export function isWrittenEmpty({ field, schema }: Member): boolean {
  return field.presence !== "optional" || field.emitEmpty === true || !omitsEmpty(schema);
}

/** What is written where the member is absent; undefined leaves it out. */
export function absentText(member: Member): () => string | undefined {
  const { field, schema } = member;
  const isPointer = field.presence === "pointer" || field.nilable === true;
  let empty: string | undefined;
  // Computed at the first use: the empty value of a recursive type cannot be known while it is being compiled.
  return isLeftOut(member) ? () => undefined : () => (empty ??= isPointer ? "null" : emptyText(schema));
}

/** Whether nothing is written where the member is absent. */
function isLeftOut({ field, schema }: Member): boolean {
  if (field.emitEmpty === true) return false;
  return field.presence === "pointer" || (field.presence === "optional" && omitsEmpty(schema));
}

/** Go's `omitempty` leaves out everything but structs. */
function omitsEmpty(schema: Schema): boolean {
  return schema.type !== "object" && schema.type !== "special" && schema.type !== "raw";
}

export function isEmptyValue(value: unknown): boolean {
  switch (typeof value) {
    case "object":
      return Array.isArray(value) ? value.length === 0 : hasNoMembers(value as object);
    default:
      return value === "" || value === 0 || value === false || value === 0n;
  }
}

function emptyText(schema: Schema): string {
  switch (schema.type) {
    case "string":
      return '""';
    case "integer":
    case "number":
      return "0";
    case "boolean":
      return "false";
    case "object":
      return writerOf(schema)({});
    case "special":
      if (schema.format === "quantity") return '"0"';
      if (schema.format === "intOrString") return "0";
      return schema.format === "duration" ? '"0s"' : "null";
    case "enum":
      return '""';
    default:
      return "null";
  }
}
