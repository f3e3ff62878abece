/**
 * Prunes parts of custom resources: drops and reports unknown members unless the schema preserves them, and removes
 * nulls of fields that are not nullable. Validation checks the types of values.
 */

import { type Member, membersOf } from "../members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { depthMax } from "../value/limits.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { type DecodeContext, type Decoder, reportError, reportUnknown } from "./context.ts";

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
      return removeMembers;
  }
}

interface Slot {
  readonly schema: Schema;
  readonly decode: Decoder;
  /** An absent member gets it. */
  readonly hasDefault: boolean;
}

function objectPruner(schema: ObjectSchema, decoderOf: DecoderOf): Decoder {
  const preserve = schema.preserveUnknown === true;
  let slots: ReadonlyMap<string, Slot> | undefined;
  return (value, context) => {
    if (!isPlainObject(value)) return preserve ? value : removeMembers(value, context);
    slots ??= new Map(membersOf(schema).map((each) => [each.name, slotOf(each, decoderOf)]));
    if (context.steps.length >= depthMax) return reportError(context, "exceeded max depth");
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const slot = slots.get(name);
      context.steps.push(name);
      if (slot !== undefined) decodeMember(members, name, value[name], slot, context);
      else if (preserve) setMember(members, name, value[name]);
      else reportUnknown(context);
      context.steps.pop();
    }
    return members;
  };
}

function mapPruner(schema: MapSchema, decoderOf: DecoderOf): Decoder {
  let slot: Slot | undefined;
  return (value, context) => {
    if (!isPlainObject(value)) return removeMembers(value, context);
    slot ??= { schema: schema.values, decode: decoderOf(schema.values), hasDefault: false };
    if (context.steps.length >= depthMax) return reportError(context, "exceeded max depth");
    const members: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      context.steps.push(name);
      decodeMember(members, name, value[name], slot, context);
      context.steps.pop();
    }
    return members;
  };
}

function listPruner(schema: ListSchema, decoderOf: DecoderOf): Decoder {
  const { items } = schema;
  let decode: Decoder | undefined;
  return (value, context) => {
    if (!Array.isArray(value)) return removeMembers(value, context);
    decode ??= decoderOf(items);
    if (context.steps.length >= depthMax) return reportError(context, "exceeded max depth");
    const decoded: unknown[] = [];
    for (let position = 0; position < value.length; position++) {
      context.steps.push(position);
      // A list keeps its length: null becomes the default, or stays for validation to reject.
      if (value[position] !== null) decoded.push(decode(value[position], context));
      else decoded.push(items.nullable === true ? null : structuredClone(items.nullDefault ?? null));
      context.steps.pop();
    }
    return decoded;
  };
}

function slotOf({ schema, field }: Member, decoderOf: DecoderOf): Slot {
  return { schema, decode: decoderOf(schema), hasDefault: field.default !== undefined };
}

function decodeMember(
  members: Record<string, unknown>,
  name: string,
  value: unknown,
  slot: Slot,
  context: DecodeContext,
): void {
  if (value === null) {
    const { nullable, nullDefault } = slot.schema;
    if (nullable === true) setMember(members, name, null);
    else if (nullDefault !== undefined) setMember(members, name, structuredClone(nullDefault));
    else if (context.keepNulls && !slot.hasDefault) setMember(members, name, null);
    return;
  }
  const decoded = slot.decode(value, context);
  if (decoded !== undefined) setMember(members, name, decoded);
}

/** Removes all members, for schemas without members. */
function removeMembers(value: unknown, context: DecodeContext): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (context.steps.length >= depthMax) return reportError(context, "exceeded max depth");
  if (Array.isArray(value)) {
    return value.map((item, position) => {
      context.steps.push(position);
      const pruned = removeMembers(item, context);
      context.steps.pop();
      return pruned;
    });
  }
  for (const name of Object.keys(value)) {
    context.steps.push(name);
    reportUnknown(context);
    context.steps.pop();
  }
  return {};
}
