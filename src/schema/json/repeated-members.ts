/** Merges duplicate members as Go's decoder does. */

import { memberOf } from "../members.ts";
import type { MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { RepeatedMember } from "./scanner.ts";

/**
 * Resolves all `RepeatedMember`s in a value of `schema`: objects and maps are decoded into the previous value, so that
 * their members merge; for all other types, and for the values of maps, the last one counts. Null clears a map and
 * leaves an object unchanged.
 */
export function mergeRepeatedMembers(schema: Schema | undefined, value: unknown): unknown {
  if (value instanceof RepeatedMember) {
    return mergesRepeated(schema)
      ? mergeValues(schema, value.values)
      : mergeRepeatedMembers(schema, value.values.at(-1));
  }
  if (Array.isArray(value)) {
    const items = schema?.type === "list" ? schema.items : undefined;
    return value.map((item) => mergeRepeatedMembers(items, item));
  }
  if (!isPlainObject(value)) return value;
  const members: Record<string, unknown> = {};
  for (const name of Object.keys(value)) setMember(members, name, mergeMember(schema, name, valuesOf(value[name])));
  return members;
}

function mergesRepeated(schema: Schema | undefined): schema is ObjectSchema | MapSchema {
  return (schema?.type === "object" || schema?.type === "map") && schema.unstructured !== true;
}

function mergeValues(schema: ObjectSchema | MapSchema, values: readonly unknown[]): unknown {
  let members = new Map<string, unknown[]>();
  let other: unknown;
  for (const value of values) {
    if (value === null && schema.type === "object") continue;
    if (!isPlainObject(value)) {
      members = new Map();
      other = value;
      continue;
    }
    other = undefined;
    for (const name of Object.keys(value)) {
      const values = members.get(name);
      if (values === undefined) members.set(name, [...valuesOf(value[name])]);
      else for (const repeated of valuesOf(value[name])) values.push(repeated);
    }
  }
  if (other !== undefined) return other;
  const merged: Record<string, unknown> = {};
  for (const [name, all] of members) setMember(merged, name, mergeMember(schema, name, all));
  return merged;
}

function mergeMember(schema: Schema | undefined, name: string, values: readonly unknown[]): unknown {
  const { unstructured = false } = schema ?? {};
  if (schema?.type === "object" && !unstructured) {
    const member = memberOf(schema, name)?.schema;
    return values.length > 1 && mergesRepeated(member)
      ? mergeValues(member, values)
      : mergeRepeatedMembers(member, values.at(-1));
  }
  return mergeRepeatedMembers(schema?.type === "map" && !unstructured ? schema.values : undefined, values.at(-1));
}

function valuesOf(value: unknown): readonly unknown[] {
  return value instanceof RepeatedMember ? value.values : [value];
}
