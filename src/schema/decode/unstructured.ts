/**
 * How parts of custom resources are read: members that the schema does not know are dropped and named, unless it
 * preserves them; nulls go, where null is no value; nothing else changes. Whether a value is of the right type is for
 * validation to say.
 */

import { membersOf } from "../members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { depthMax } from "../value/limits.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { type DecodeContext, type Decoder, reportError, reportUnknown } from "./walk.ts";

type DecoderOf = (schema: Schema) => Decoder;

export function unstructuredDecoder(schema: Schema, decoderOf: DecoderOf): Decoder {
  switch (schema.type) {
    case "object":
      return objectPruner(schema, decoderOf);
    case "map":
      return mapPruner(schema, decoderOf);
    case "list":
      return listPruner(schema, decoderOf);
    case "raw":
      return (value) => value;
    default:
      return withoutMembers;
  }
}

interface Slot {
  readonly schema: Schema;
  readonly decode: Decoder;
}

function objectPruner(schema: ObjectSchema, decoderOf: DecoderOf): Decoder {
  const preserve = schema.preserveUnknown === true;
  let slots: ReadonlyMap<string, Slot> | undefined;
  return (value, walk) => {
    if (!isPlainObject(value)) return preserve ? value : withoutMembers(value, walk);
    slots ??= new Map(membersOf(schema).map((each) => [each.name, slotOf(each.schema, decoderOf)]));
    if (walk.steps.length >= depthMax) return reportError(walk, "exceeded max depth");
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const slot = slots.get(name);
      walk.steps.push(name);
      if (slot !== undefined) decodeMember(members, name, value[name], slot, walk);
      else if (preserve) setMember(members, name, value[name]);
      else reportUnknown(walk);
      walk.steps.pop();
    }
    return members;
  };
}

function mapPruner(schema: MapSchema, decoderOf: DecoderOf): Decoder {
  let slot: Slot | undefined;
  return (value, walk) => {
    if (!isPlainObject(value)) return withoutMembers(value, walk);
    slot ??= slotOf(schema.values, decoderOf);
    if (walk.steps.length >= depthMax) return reportError(walk, "exceeded max depth");
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      walk.steps.push(name);
      decodeMember(members, name, value[name], slot, walk);
      walk.steps.pop();
    }
    return members;
  };
}

function listPruner(schema: ListSchema, decoderOf: DecoderOf): Decoder {
  const { items } = schema;
  let decode: Decoder | undefined;
  return (value, walk) => {
    if (!Array.isArray(value)) return withoutMembers(value, walk);
    decode ??= decoderOf(items);
    if (walk.steps.length >= depthMax) return reportError(walk, "exceeded max depth");
    const decoded: unknown[] = [];
    for (let position = 0; position < value.length; position++) {
      walk.steps.push(position);
      // A list keeps its places: a null that is no value is the default, or refused by validation.
      if (value[position] !== null) decoded.push(decode(value[position], walk));
      else decoded.push(items.nullable === true ? null : structuredClone(items.nullDefault ?? null));
      walk.steps.pop();
    }
    return decoded;
  };
}

function slotOf(schema: Schema, decoderOf: DecoderOf): Slot {
  return { schema, decode: decoderOf(schema) };
}

function decodeMember(
  members: Record<string, unknown>,
  name: string,
  value: unknown,
  slot: Slot,
  walk: DecodeContext,
): void {
  if (value === null) {
    const { nullable, nullDefault } = slot.schema;
    if (nullable === true) setMember(members, name, null);
    else if (nullDefault !== undefined) setMember(members, name, structuredClone(nullDefault));
    return;
  }
  const decoded = slot.decode(value, walk);
  if (decoded !== undefined) setMember(members, name, decoded);
}

/** Where the schema knows no members, a value has none. */
function withoutMembers(value: unknown, walk: DecodeContext): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (walk.steps.length >= depthMax) return reportError(walk, "exceeded max depth");
  if (Array.isArray(value)) {
    return value.map((item, position) => {
      walk.steps.push(position);
      const pruned = withoutMembers(item, walk);
      walk.steps.pop();
      return pruned;
    });
  }
  for (const name of Object.keys(value)) {
    walk.steps.push(name);
    reportUnknown(walk);
    walk.steps.pop();
  }
  return {};
}
