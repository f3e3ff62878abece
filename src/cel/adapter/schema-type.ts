/** Derives CEL types from schemas, with bounds of the size of values. */
import { membersOf } from "../../schema/members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema, StringSchema } from "../../schema/schema.ts";
import { REQUEST_BYTES_MAX } from "../cost/limits.ts";
import { type Bounds, listType, mapType, type ObjectType, type Type } from "../values/types.ts";
import { escapeName } from "./escape.ts";

export interface TypeOfOptions {
  /** The schema describes a whole resource, with `apiVersion`, `kind`, `metadata.name` and `.generateName`. */
  readonly resourceRoot?: boolean;
}

/** Minimum sizes in JSON, in bytes: `0`, `true`, `""`, `[]`, `{}`. */
const sizes = { number: 1, boolean: 4, text: 2, list: 2, object: 2, dateTime: 21, date: 12, duration: 3 };
/** Scalars cost nothing to traverse. */
const scalar: Bounds = { maxElements: 0 };
const TEXT_MAX = REQUEST_BYTES_MAX - 2;
/** Including the quotes. */
const TIME_TEXT_MAX = 32;
const DATE_TEXT_MAX = 12;
const BYTES_PER_CHARACTER = 4;

const plainString: Type = { kind: "string", minSize: sizes.text, maxElements: TEXT_MAX, unbounded: "maxLength" };
const keyString: Type = { kind: "string", minSize: sizes.text, ...scalar };

const cache = new WeakMap<Schema, Type | undefined>();
const rootCache = new WeakMap<ObjectSchema, ObjectType>();

/** Undefined for values without a type, which expressions cannot access. Returns one type per schema. */
export function celTypeOf(schema: Schema, options: TypeOfOptions = {}): Type | undefined {
  if (schema.type === "object" && (options.resourceRoot === true || schema.embeddedResource === true)) {
    return resourceType(schema);
  }
  if (!cache.has(schema)) cache.set(schema, declareType(schema));
  return cache.get(schema);
}

function declareType(schema: Schema): Type | undefined {
  switch (schema.type) {
    case "string":
      return stringTypeOf(schema);
    case "enum":
      return plainString;
    case "integer":
      return { kind: "int", minSize: sizes.number, ...scalar };
    case "number":
      return { kind: "double", minSize: sizes.number, ...scalar };
    case "boolean":
      return { kind: "bool", minSize: sizes.boolean, ...scalar };
    case "bytes":
      return { kind: "bytes", minSize: sizes.text, ...lengthBounds(schema, 1) };
    case "special":
      return specialType(schema);
    case "raw":
      // Objects without declared members; any JSON has no type.
      return schema.format === "json" ? undefined : emptyObject(schema.format);
    case "list":
      return declareList(schema);
    case "map":
      return declareMap(schema);
    case "object":
      return declareObject(schema);
    case "either":
      return undefined;
    default:
      return schema satisfies never;
  }
}

function stringTypeOf(schema: StringSchema): Type {
  switch (schema.rules?.format) {
    case "byte":
      return { kind: "bytes", minSize: sizes.text, ...lengthBounds(schema, 1) };
    case "duration":
      return { kind: "duration", minSize: sizes.duration, maxElements: TIME_TEXT_MAX };
    case "date":
      return { kind: "timestamp", minSize: sizes.date, maxElements: DATE_TEXT_MAX };
    case "date-time":
      return { kind: "timestamp", minSize: sizes.dateTime, maxElements: TIME_TEXT_MAX };
    default:
      return { kind: "string", minSize: sizes.text, ...stringBounds(schema) };
  }
}

function stringBounds(schema: StringSchema): Bounds {
  const values = schema.rules?.enum ?? schema.values;
  if (schema.rules?.maxLength === undefined && values !== undefined && values.length > 0) {
    const lengths = values.map((value) => (typeof value === "string" ? Buffer.byteLength(value) : 0));
    return { maxElements: Math.max(...lengths) };
  }
  return lengthBounds(schema, BYTES_PER_CHARACTER);
}

/** `maxLength` counts characters, costs count bytes. */
function lengthBounds({ rules }: Schema, bytesPerUnit: number): Bounds {
  if (rules?.maxLength === undefined) return { maxElements: TEXT_MAX, unbounded: "maxLength" };
  return { maxElements: Math.max(0, rules.maxLength) * bytesPerUnit };
}

function specialType(schema: Schema & { type: "special" }): Type {
  switch (schema.format) {
    case "time":
    case "microTime":
      return { kind: "timestamp", minSize: sizes.dateTime, maxElements: TIME_TEXT_MAX };
    case "intOrString":
      return { kind: "dyn", minSize: sizes.number, ...lengthBounds(schema, BYTES_PER_CHARACTER) };
    case "duration":
    case "quantity":
      return { kind: "string", minSize: sizes.text, ...lengthBounds(schema, BYTES_PER_CHARACTER) };
    default:
      return schema.format satisfies never;
  }
}

function declareList(schema: ListSchema): Type | undefined {
  const element = celTypeOf(schema.items);
  if (element === undefined) return undefined;
  const max = schema.rules?.maxItems;
  if (max !== undefined) return listType(element, { minSize: sizes.list, maxElements: Math.max(0, max) });
  // Two brackets, and a comma per item.
  const maxElements = Math.floor((REQUEST_BYTES_MAX - 2) / ((element.minSize ?? 0) + 1));
  return listType(element, { minSize: sizes.list, maxElements, unbounded: "maxItems" });
}

function declareMap(schema: MapSchema): Type | undefined {
  const value = celTypeOf(schema.values);
  if (value === undefined) return undefined;
  const max = schema.rules?.maxProperties;
  if (max !== undefined) return mapType(keyString, value, { minSize: sizes.object, maxElements: Math.max(0, max) });
  // Two braces; per entry a key of two bytes, two quotes, colon and comma.
  const maxElements = Math.floor((REQUEST_BYTES_MAX - 2) / ((value.minSize ?? 0) + 6));
  return mapType(keyString, value, { minSize: sizes.object, maxElements, unbounded: "maxProperties" });
}

function declareObject(schema: ObjectSchema): ObjectType {
  const names = new Map<string, Schema>();
  for (const { name, schema: member } of membersOf(schema)) {
    const escaped = escapeName(name);
    if (escaped !== undefined) names.set(escaped, member);
  }
  return {
    kind: "object",
    name: schema.name,
    ...scalar,
    // Lazy, since schemas can be recursive.
    field: (name) => {
      const member = names.get(name);
      return member === undefined ? undefined : celTypeOf(member);
    },
    fieldNames: () => [...names.keys()],
    get minSize() {
      return objectSize(schema);
    },
  };
}

const measuring = new Set<ObjectSchema>();

/** The braces, and per required field without a default: quotes, colon, comma, value. */
function objectSize(schema: ObjectSchema): number {
  // A required field of the same type recurses without end.
  if (measuring.has(schema)) return sizes.object;
  measuring.add(schema);
  let size = sizes.object;
  for (const { name, field, schema: member } of membersOf(schema)) {
    const required = field.presence === "required" || schema.rules?.required?.includes(name) === true;
    if (!required || field.default !== undefined || celTypeOf(member) === undefined) continue;
    size += name.length + (celTypeOf(member)?.minSize ?? 0) + 4;
  }
  measuring.delete(schema);
  return size;
}

function emptyObject(name: string): ObjectType {
  return { kind: "object", name, minSize: sizes.object, ...scalar, field: () => undefined, fieldNames: () => [] };
}

const plainMetadata: ObjectType = {
  ...emptyObject("metadata"),
  field: (name) => (name === "name" || name === "generateName" ? plainString : undefined),
  fieldNames: () => ["name", "generateName"],
};

/** Expressions on custom resources can access only the names in `metadata`. */
function resourceType(schema: ObjectSchema): ObjectType {
  let type = rootCache.get(schema);
  if (type === undefined) {
    type = withResourceMembers(declareObject(schema), schema.unstructured === true);
    rootCache.set(schema, type);
  }
  return type;
}

function withResourceMembers(type: ObjectType, custom: boolean): ObjectType {
  const metadata = type.field("metadata");
  const whole = metadata?.kind === "object" && metadata.field("generateName") !== undefined;
  const added: Readonly<Record<string, Type>> = { apiVersion: plainString, kind: plainString, metadata: plainMetadata };
  if (!custom && whole && type.field("apiVersion") !== undefined) return type;
  return {
    ...type,
    field: (name) => (Object.hasOwn(added, name) ? added[name] : type.field(name)),
    fieldNames: () => [...new Set([...type.fieldNames(), ...Object.keys(added)])],
  };
}
