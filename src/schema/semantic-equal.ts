/**
 * Semantic equality of two values of a schema: an omitted member equals its empty value, and quantities are compared by
 * amount.
 */

import { membersOf } from "./members.ts";
import type { Field, ObjectSchema, Schema, SpecialSchema } from "./schema.ts";
import { deepEqual } from "./value/equal.ts";
import { parseQuantity } from "./value/quantity.ts";
import { zeroOf } from "./zero-value.ts";

export function semanticEqual(schema: Schema, a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  switch (schema.type) {
    case "object":
      return semanticEqualObjects(schema, a, b);
    case "list":
      return semanticEqualLists(schema.items, listOf(a), listOf(b));
    case "map":
      return semanticEqualMaps(schema.values, mapOf(a), mapOf(b));
    case "special":
      return semanticEqualSpecials(schema, a ?? zeroOf(schema), b ?? zeroOf(schema));
    case "raw":
      return deepEqual(a, b);
    default:
      return (a || undefined) === (b || undefined);
  }
}

function semanticEqualSpecials({ format }: SpecialSchema, a: unknown, b: unknown): boolean {
  if (format !== "quantity" || typeof a !== "string" || typeof b !== "string") return deepEqual(a, b);
  return parseQuantity(a)?.nanos === parseQuantity(b)?.nanos;
}

function semanticEqualObjects(schema: ObjectSchema, a: unknown, b: unknown): boolean {
  for (const { name, field, schema: target } of membersOf(schema)) {
    const mine = valueOfMember(a, name);
    const theirs = valueOfMember(b, name);
    if (mine !== theirs && !semanticEqualMembers(field, target, mine, theirs)) return false;
  }
  return true;
}

/** An absent pointer differs from every value. */
function semanticEqualMembers(field: Field, target: Schema, a: unknown, b: unknown): boolean {
  const nilable = field.presence === "pointer" || field.nilable === true;
  const collection = target.type === "list" || target.type === "map";
  if (!nilable || collection) return semanticEqual(target, a, b);
  if (a === undefined || b === undefined) return a === b;
  return target.type === "object" || target.type === "special" ? semanticEqual(target, a, b) : deepEqual(a, b);
}

function valueOfMember(object: unknown, name: string): unknown {
  const member = (object as Readonly<Record<string, unknown>> | undefined)?.[name];
  return member === null ? undefined : member;
}

function listOf(list: unknown): readonly unknown[] {
  return (list ?? []) as readonly unknown[];
}

function mapOf(map: unknown): Readonly<Record<string, unknown>> {
  return (map ?? {}) as Readonly<Record<string, unknown>>;
}

function semanticEqualLists(items: Schema, a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => semanticEqual(items, item, b[index]));
}

function semanticEqualMaps(
  values: Schema,
  a: Readonly<Record<string, unknown>>,
  b: Readonly<Record<string, unknown>>,
): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && semanticEqual(values, a[name], b[name]))
  );
}
