/**
 * CEL values of typed objects as Kubernetes' converter to unstructured objects makes them: what JSON contains, without
 * types. Members are converted on access.
 */
import { isEmptyValue, isWrittenEmpty, textWhenAbsent } from "../../schema/json/encode.ts";
import { type Member, membersOf } from "../../schema/members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema } from "../../schema/schema.ts";
import { dynType, type Type } from "../values/types.ts";
import { List, MapValue, type Value } from "../values/value.ts";
import { toDynamicCelValue } from "./json-value.ts";

type Json = Readonly<Record<string, unknown>>;

const mapType: Type = { kind: "map", key: { kind: "string" }, value: dynType };

/** `identity`: the members `apiVersion` and `kind` of an object that is stored without them. */
export function toUnstructuredValue(schema: ObjectSchema, object: Json, identity?: Json): Value {
  if (schema.unstructured === true)
    return toDynamicCelValue(identity === undefined ? object : { ...object, ...identity });
  return new UnstructuredObject(schema, object, identity);
}

function convert(schema: Schema, value: unknown): Value {
  if (value === null || value === undefined) return null;
  if (schema.unstructured === true) return toDynamicCelValue(value);
  switch (schema.type) {
    case "object":
      return new UnstructuredObject(schema, value as Json, undefined);
    case "list":
      return new UnstructuredList(schema, value as readonly unknown[]);
    case "map":
      return new UnstructuredMap(schema, value as Json);
    case "number":
      return Number(value);
    case "bytes":
      return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : (value as string);
    case "raw":
      return toDynamicCelValue(value instanceof Uint8Array ? parseRaw(value) : value);
    default:
      return toDynamicCelValue(value);
  }
}

/** A raw value that is not JSON, such as a nested protobuf object, has no members. */
function parseRaw(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return null;
  }
}

interface Slot {
  readonly schema: Schema;
  /** Whether JSON contains an empty value. */
  readonly isWrittenEmpty: boolean;
  /** The value that JSON contains when the member is absent; undefined when it contains none. */
  absent(): Value | undefined;
}

const slotsOf = new WeakMap<ObjectSchema, ReadonlyMap<string, Slot>>();

function slots(schema: ObjectSchema): ReadonlyMap<string, Slot> {
  let found = slotsOf.get(schema);
  if (found === undefined) {
    found = new Map(membersOf(schema).map((member) => [member.name, slotOf(member)]));
    slotsOf.set(schema, found);
  }
  return found;
}

function slotOf(member: Member): Slot {
  const text = textWhenAbsent(member);
  let absent: Value | undefined;
  let isKnown = false;
  return {
    schema: member.schema,
    isWrittenEmpty: isWrittenEmpty(member),
    absent() {
      if (!isKnown) {
        const json = text();
        absent = json === undefined ? undefined : toDynamicCelValue(JSON.parse(json));
        isKnown = true;
      }
      return absent;
    },
  };
}

class UnstructuredObject extends MapValue {
  readonly type = mapType;
  readonly #schema: ObjectSchema;
  readonly #object: Json;
  readonly #identity: Json | undefined;

  constructor(schema: ObjectSchema, object: Json, identity: Json | undefined) {
    super();
    this.#schema = schema;
    this.#object = object;
    this.#identity = identity;
  }

  get size(): number {
    let size = 0;
    for (const _ of this.keys()) size++;
    return size;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string") return undefined;
    if (this.#identity !== undefined && Object.hasOwn(this.#identity, key)) return this.#identity[key] as string;
    const slot = slots(this.#schema).get(key);
    if (slot === undefined) return this.#undeclared(key);
    const value = this.#object[key];
    if (value === undefined || value === null) return slot.absent();
    return slot.isWrittenEmpty || !isEmptyValue(value) ? convert(slot.schema, value) : undefined;
  }

  /** A member that the schema preserves without declaring it. */
  #undeclared(key: string): Value | undefined {
    if (this.#schema.preserveUnknown !== true || !Object.hasOwn(this.#object, key)) return undefined;
    return toDynamicCelValue(this.#object[key]);
  }

  *keys(): Iterable<Value> {
    const identity = this.#identity ?? {};
    yield* Object.keys(identity);
    for (const name of slots(this.#schema).keys()) {
      if (!Object.hasOwn(identity, name) && this.get(name) !== undefined) yield name;
    }
  }
}

class UnstructuredMap extends MapValue {
  readonly type = mapType;
  readonly #schema: MapSchema;
  readonly #entries: Json;

  constructor(schema: MapSchema, entries: Json) {
    super();
    this.#schema = schema;
    this.#entries = entries;
  }

  get size(): number {
    return Object.keys(this.#entries).length;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string" || !Object.hasOwn(this.#entries, key)) return undefined;
    return convert(this.#schema.values, this.#entries[key]);
  }

  override has(key: Value): boolean {
    return typeof key === "string" && Object.hasOwn(this.#entries, key);
  }

  keys(): Iterable<Value> {
    return Object.keys(this.#entries);
  }
}

class UnstructuredList extends List {
  readonly #schema: ListSchema;
  readonly #items: readonly unknown[];

  constructor(schema: ListSchema, items: readonly unknown[]) {
    super();
    this.#schema = schema;
    this.#items = items;
  }

  get size(): number {
    return this.#items.length;
  }

  at(index: number): Value {
    return convert(this.#schema.items, this.#items[index]);
  }
}
