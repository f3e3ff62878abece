import { isPlainObject } from "../plain.ts";
import { type FieldSet, isEmptySet, LEAF, type MutableFieldSet, noFields, SELF } from "./field-set.ts";
import { type ItemsShape, type MembersShape, resolved, type Shape } from "./shape.ts";

/**
 * The fields that a value names: its scalars, its atomic and its empty members, the items of its lists. Throws an
 * `IdentityError` where items cannot be told apart.
 */
export function toFieldSet(shape: Shape, value: unknown): FieldSet {
  return fieldsOf(shape, value) ?? noFields;
}

/** Undefined when the value names no field; `LEAF` when it is one itself. */
function fieldsOf(shape: Shape, value: unknown): FieldSet | undefined {
  const form = resolved(shape, value);
  switch (form.form) {
    case "members":
      return isPlainObject(value) ? ofMembers(form, value) : undefined;
    case "items":
      return Array.isArray(value) ? ofItems(form, value) : undefined;
    default:
      return LEAF;
  }
}

function ofMembers({ declared, rest }: MembersShape, value: Readonly<Record<string, unknown>>): FieldSet | undefined {
  const result: MutableFieldSet = {};
  let found = false;
  for (const name in value) {
    const member = value[name];
    if (member === undefined) continue;
    const known = declared.get(name);
    const shape = known ?? rest;
    const set = shape === undefined ? LEAF : fieldsOf(shape, member);
    const itself = known === undefined || member === null || isEmptyMap(member);
    if (set === undefined && !itself) continue;
    result[`f:${name}`] = set === undefined ? LEAF : itself ? withSelf(set) : set;
    found = true;
  }
  return found ? result : undefined;
}

function isEmptyMap(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  for (const name in value) if (value[name] !== undefined) return false;
  return true;
}

/** Items that share an identity are one field, whatever they hold. */
function ofItems({ items, elementOf }: ItemsShape, value: readonly unknown[]): FieldSet | undefined {
  if (elementOf === undefined) return LEAF;
  if (value.length === 0) return undefined;
  const result: MutableFieldSet = {};
  for (const item of value) {
    const element = elementOf(item);
    result[element] = result[element] === undefined ? withSelf(fieldsOf(items, item) ?? LEAF) : LEAF;
  }
  return result;
}

function withSelf(below: FieldSet): FieldSet {
  return isEmptySet(below) || below[SELF] !== undefined ? below : { [SELF]: LEAF, ...below };
}
