/** Encodes values as JSON by their schema, byte for byte as Go's encoder does for Kubernetes' types. */

import { Buffer } from "node:buffer";
import { type Member, membersOf } from "../members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { stringifyFieldsV1 } from "../value/fields-v1-cache.ts";
import { formatInteger } from "../value/int64.ts";
import { hasNoMembers, sortedNames } from "../value/plain-object.ts";
import { type VisitMembers, type Visitor, visitMembers } from "../value/visit-members.ts";
import { canonicalJson } from "./canonical-json.ts";
import { stringifyExact } from "./exact-numbers.ts";
import { escapeHtml } from "./html-escape.ts";

export interface EncodeJsonOptions {
  /** Leaves out `kind` and `apiVersion` at the top. */
  readonly omitTypeMeta?: boolean;
}

/**
 * Members in the schema's order, map keys sorted. Omits empty optional members; writes absent embedded structs and
 * times that are not pointers as `{}` and `null`, and absent lists without `omitempty` as `null`.
 */
export function encodeJson(schema: ObjectSchema, value: unknown, options?: EncodeJsonOptions): Buffer {
  return Buffer.from(stringify(schema, value, options), "utf8");
}

/** `encodeJson` as text. */
export function stringify(schema: ObjectSchema, value: unknown, options?: EncodeJsonOptions): string {
  const members = (value ?? {}) as Readonly<Record<string, unknown>>;
  return options?.omitTypeMeta === true ? writerWithoutTypeMeta(schema)(members) : writerOf(schema)(members);
}

type Writer = (value: never) => string;
type ObjectWriter = (value: Readonly<Record<string, unknown>>) => string;

const writers = new WeakMap<Schema, Writer>();
const writersWithoutTypeMeta = new WeakMap<ObjectSchema, ObjectWriter>();

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

function writerWithoutTypeMeta(schema: ObjectSchema): ObjectWriter {
  let writer = writersWithoutTypeMeta.get(schema);
  if (writer === undefined) {
    writer =
      schema.unstructured === true
        ? canonicalJsonWithoutTypeMeta
        : objectWriter(schema, (member) => member.name !== "kind" && member.name !== "apiVersion");
    writersWithoutTypeMeta.set(schema, writer);
  }
  return writer;
}

function canonicalJsonWithoutTypeMeta({
  kind: _,
  apiVersion: __,
  ...members
}: Readonly<Record<string, unknown>>): string {
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
      if (schema.format === "fieldsV1") return rawWriter(stringifyFieldsV1);
      return rawWriter((value) => escapeHtml(stringifyExact(value)));
    case "bytes":
      return (value: string | Uint8Array) =>
        JSON.stringify(typeof value === "string" ? value : Buffer.from(value).toString("base64"));
    case "integer":
      return formatInteger;
    case "string":
    case "enum":
      return quote;
    case "boolean":
      return (value: boolean) => (value ? "true" : "false");
    case "either":
      return (value: unknown) => {
        if (typeof value === "boolean") return String(value);
        const variant = Array.isArray(value) ? schema.list : schema.object;
        return variant === undefined || (isEmptyValue(value) && Array.isArray(value))
          ? "null"
          : writerOf(variant.schema() as Schema)(value as never);
      };
    case "special":
      return (value: string | number) => (typeof value === "string" ? quote(value) : String(value));
    default:
      return (value: unknown) => JSON.stringify(value) ?? "null";
  }
}

/** Bytes are a raw value that is not JSON, such as a nested protobuf object. */
function rawWriter(write: (value: unknown) => string): Writer {
  return (value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("utf8") || "null" : write(value);
}

const unescapedText = /^[\x20\x21\x23-\x25\x27-\x3b\x3d\x3f-\x5b\x5d-\x7e]*$/;

/** Most text needs no escapes. */
function quote(text: string): string {
  return unescapedText.test(text) ? `"${text}"` : escapeHtml(JSON.stringify(text));
}

function listWriter(schema: ListSchema): Writer {
  let item: Writer | undefined;
  return (items: readonly never[] | null) => {
    // In a map or list, a list can be null.
    if (items === null) return "null";
    item ??= writerOf(schema.items);
    let text = "[";
    for (let index = 0; index < items.length; index++) {
      text += (index === 0 ? "" : ",") + item(items[index] as never);
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
      if (value !== undefined) text += `${text.length === 1 ? "" : ","}${quote(name)}:${member(value)}`;
    }
    return `${text}}`;
  };
}

/** The JSON written so far. */
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
  const write: Writer = isNullWhenEmpty(member) ? nullWhenEmpty(writerOf(member.schema)) : writerOf(member.schema);
  const writtenEmpty = isWrittenEmpty(member);
  const absent = textWhenAbsent(member);
  const add = (sink: Sink, written: string): void => {
    sink.text += (sink.text.length === 1 ? "" : ",") + prefix + written;
  };
  const visit = (sink: Sink, value: unknown): void => {
    if (writtenEmpty || !isEmptyValue(value)) add(sink, write(value as never));
  };
  if (isOmittedWhenAbsent(member)) return { name: member.name, visit };
  return { name: member.name, visit, absent: (sink) => add(sink, absent() ?? "null") };
}

/** Protobuf has no empty lists: a list that is stored empty is read back as absent. */
function isNullWhenEmpty({ field, schema }: Member): boolean {
  return schema.type === "list" && field.number !== 0 && field.presence !== "pointer";
}

function nullWhenEmpty(write: Writer): Writer {
  return (items: never) => ((items as readonly unknown[]).length === 0 ? "null" : write(items));
}

/** Whether an empty value of the member is written. */
export function isWrittenEmpty({ field, schema }: Member): boolean {
  return field.presence !== "optional" || field.emitEmpty === true || !omitsEmpty(schema);
}

/** The JSON that is written when the member is absent; undefined omits the member. */
export function textWhenAbsent(member: Member): () => string | undefined {
  const { field, schema } = member;
  const isPointer = field.presence === "pointer" || field.nilable === true;
  let empty: string | undefined;
  // Computed at the first use, since the writer of a recursive type is not complete yet.
  return isOmittedWhenAbsent(member) ? () => undefined : () => (empty ??= isPointer ? "null" : emptyText(schema));
}

/** Whether JSON omits the member when it is absent. */
function isOmittedWhenAbsent({ field, schema }: Member): boolean {
  if (field.emitEmpty === true) return false;
  return field.presence === "pointer" || (field.presence === "optional" && omitsEmpty(schema));
}

/** Go's `omitempty` omits empty values of all types except structs. */
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
