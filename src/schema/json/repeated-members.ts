/** What Go's decoder makes of members that an object names more than once. */

import { memberOf } from "../members.ts";
import type { MapSchema, ObjectSchema, Schema } from "../schema.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { RepeatedMember } from "./scanner.ts";

/**
 * The value that `schema` stands for: an object or a map is read into what has been read before, so that members add
 * up; of anything else, and of the members of a map, the last counts. Null empties a map and leaves an object alone.
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
      const known = members.get(name);
      if (known === undefined) members.set(name, [...valuesOf(value[name])]);
      else known.push(...valuesOf(value[name]));
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
