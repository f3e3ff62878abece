/**
 * Converts a value to what its JSON contains: empty optional members are left out, members that Go always writes are
 * set to their zero value. Managed fields are computed on this value, so that members which are always written have no
 * manager.
 */

import { isEmptyValue, isWrittenEmpty, textWhenAbsent } from "../json/encode.ts";
import { type Member, membersOf } from "../members.ts";
import type { ObjectSchema, Schema } from "../schema.ts";
import { deepFreeze } from "../value/freeze.ts";
import { NIL_LIST } from "../zero-value.ts";

/** Returns the value itself when nothing changes; otherwise the result shares the unchanged parts with it. */
export function toJsonValue(schema: Schema, value: unknown): unknown {
  return converterOf(schema, converters)(value);
}

/** As `toJsonValue`, without required lists that a created object lacks: they have the value of no object. */
export function toCreatedJsonValue(schema: Schema, value: unknown): unknown {
  return converterOf(schema, convertersOfCreated)(value);
}

type Converter = (value: unknown) => unknown;

type Converters = WeakMap<Schema, Converter>;

const converters: Converters = new WeakMap();
const convertersOfCreated: Converters = new WeakMap();
const keepValue: Converter = (value) => value;

function converterOf(schema: Schema, cache: Converters): Converter {
  let converter = cache.get(schema);
  if (converter === undefined) {
    converter = compile(schema, cache);
    cache.set(schema, converter);
  }
  return converter;
}

function compile(schema: Schema, cache: Converters): Converter {
  switch (schema.type) {
    case "object":
      return schema.unstructured === true ? keepValue : objectConverter(schema, cache);
    case "list":
      return containsObjects(schema.items) ? listConverter(() => converterOf(schema.items, cache)) : keepValue;
    case "map":
      return containsObjects(schema.values) ? mapConverter(() => converterOf(schema.values, cache)) : keepValue;
    default:
      return keepValue;
  }
}

function containsObjects(schema: Schema): boolean {
  if (schema.type === "list") return containsObjects(schema.items);
  return schema.type === "map" ? containsObjects(schema.values) : schema.type === "object";
}

interface Slot {
  readonly name: string;
  readonly convert: Converter;
  /** Whether an absent required list is left out. */
  readonly omitsNil: boolean;
  /** Whether an empty value is written. */
  readonly always: boolean;
  /** The value that JSON carries for an absent member; undefined when it carries none. */
  readonly absent: () => unknown;
}

/** Visits the members of the value: of schemas with many members, most objects have few. */
function objectConverter(schema: ObjectSchema, cache: Converters): Converter {
  let slots: ReadonlyMap<string, Slot> | undefined;
  let written: readonly Slot[] = [];
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    if (slots === undefined) {
      slots = slotsOf(schema, cache);
      written = [...slots.values()].filter(({ absent }) => absent() !== undefined);
    }
    const members = value as Readonly<Record<string, unknown>>;
    let result: Record<string, unknown> | undefined;
    for (const name of Object.keys(members)) {
      const slot = slots.get(name);
      if (slot === undefined) continue;
      const member = members[name];
      const next = convertMember(slot, member);
      if (next === member) continue;
      result ??= { ...members };
      if (next === undefined) delete result[name];
      else result[name] = next;
    }
    for (const { name, absent } of written) {
      if (Object.hasOwn(members, name)) continue;
      result ??= { ...members };
      result[name] = absent();
    }
    return result ?? value;
  };
}

function slotsOf(schema: ObjectSchema, cache: Converters): ReadonlyMap<string, Slot> {
  return new Map(
    membersOf(schema).map((member) => [
      member.name,
      {
        name: member.name,
        convert: converterOf(member.schema, cache),
        omitsNil: cache === convertersOfCreated,
        always: isWrittenEmpty(member),
        absent: absentValue(member),
      },
    ]),
  );
}

function absentValue(member: Member): () => unknown {
  const text = textWhenAbsent(member);
  let value: unknown;
  let isParsed = false;
  return () => {
    if (!isParsed) {
      const json = text();
      value = json === undefined ? undefined : deepFreeze(JSON.parse(json) as unknown);
      isParsed = true;
    }
    return value;
  };
}

function convertMember({ convert, omitsNil, always, absent }: Slot, member: unknown): unknown {
  if (omitsNil && member === NIL_LIST) return undefined;
  if (member === undefined || member === null) return absent();
  return always || !isEmptyValue(member) ? convert(member) : undefined;
}

function listConverter(items: () => Converter): Converter {
  let item: Converter | undefined;
  return (value) => {
    if (!Array.isArray(value)) return value;
    item ??= items();
    let result: unknown[] | undefined;
    for (let index = 0; index < value.length; index++) {
      const next = item(value[index]);
      if (next === value[index]) continue;
      result ??= [...value];
      result[index] = next;
    }
    return result ?? value;
  };
}

function mapConverter(values: () => Converter): Converter {
  let member: Converter | undefined;
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    member ??= values();
    let result: Record<string, unknown> | undefined;
    for (const [name, was] of Object.entries(value)) {
      const next = member(was);
      if (next === was) continue;
      result ??= { ...value };
      result[name] = next;
    }
    return result ?? value;
  };
}
