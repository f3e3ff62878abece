import type { Steps } from "../../std/async/steps.ts";
import { areLong } from "../value/check-values.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { type FieldSet, LEAF, type MutableFieldSet, noFields, SELF, sortMembers } from "./fieldpath/field-set.ts";
import { compareElements, fieldElement } from "./fieldpath/path-element.ts";
import { type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/**
 * The fields that a value contains: its scalars, its atomic and empty members, the items of its lists. Throws an
 * `IdentityError` when items have no identity.
 */
export function toFieldSet(shape: Shape, value: unknown): FieldSet {
  return fieldsOf(shape, value, false) ?? noFields;
}

/** `toFieldSet` of a long value: a step has some thousands of its values. */
export function* toFieldSetInSteps(shape: Shape, value: unknown): Steps<FieldSet> {
  return (yield* fieldsOfLong(shape, value, false)) ?? noFields;
}

/** Members or items that are added in one step. */
const STEP_SIZE = 2000;

function* fieldsOfLong(shape: Shape, value: unknown, self: boolean): Steps<FieldSet | undefined> {
  if (!areLong(value)) return fieldsOf(shape, value, self);
  const resolved = resolveShape(shape, value);
  if (resolved.kind === "members" && isPlainObject(value)) return yield* fieldsOfLongObject(resolved, value, self);
  if (resolved.kind === "items" && Array.isArray(value) && resolved.elementOf !== undefined) {
    return yield* fieldsOfLongList(resolved, resolved.elementOf, value, self);
  }
  return fieldsOf(shape, value, self);
}

function* fieldsOfLongObject(
  { declared, ordered, rest }: MembersShape,
  value: Members,
  self: boolean,
): Steps<FieldSet | undefined> {
  let result: MutableFieldSet | undefined;
  let count = 0;
  for (const name of rest === undefined ? ordered.map((member) => member.name) : Object.keys(value)) {
    if (++count % STEP_SIZE === 0) yield;
    const member = value[name];
    if (member === undefined) continue;
    const shape = declared.get(name);
    const isField = shape === undefined || member === null || isEmptyMap(member);
    const set = yield* fieldsOfLong(shape ?? rest!, member, isField);
    if (set === undefined) continue;
    result ??= emptySet(self);
    result[fieldElement(name)] = set;
  }
  if (result === undefined) return self ? LEAF : undefined;
  yield;
  return sortMembers(result);
}

function* fieldsOfLongList(
  { items }: ItemsShape,
  elementOf: (item: unknown) => string,
  value: readonly unknown[],
  self: boolean,
): Steps<FieldSet> {
  const result = emptySet(self);
  for (let index = 0; index < value.length; index++) {
    if (index % STEP_SIZE === STEP_SIZE - 1) yield;
    const element = elementOf(value[index]);
    result[element] = result[element] === undefined ? fieldsOf(items, value[index], true)! : LEAF;
  }
  yield;
  return sortMembers(result);
}

/**
 * The subtree of a value's element in canonical order; undefined when it contains no field. `self` makes the element
 * itself a field in any case.
 */
function fieldsOf(shape: Shape, value: unknown, self: boolean): FieldSet | undefined {
  const resolved = resolveShape(shape, value);
  switch (resolved.kind) {
    case "members":
      if (!isPlainObject(value)) return self ? LEAF : undefined;
      return resolved.rest === undefined
        ? fieldsOfDeclared(resolved, value, self)
        : fieldsOfMembers(resolved, value, self);
    case "items":
      return Array.isArray(value) ? fieldsOfItems(resolved, value, self) : self ? LEAF : undefined;
    default:
      return LEAF;
  }
}

type Members = Readonly<Record<string, unknown>>;

function fieldsOfDeclared({ ordered }: MembersShape, value: Members, self: boolean): FieldSet | undefined {
  let result: MutableFieldSet | undefined;
  for (const { name, element, shape } of ordered) {
    const member = value[name];
    if (member === undefined) continue;
    const set = fieldsOf(shape, member, member === null || isEmptyMap(member));
    if (set === undefined) continue;
    result ??= emptySet(self);
    result[element] = set;
  }
  return result ?? (self ? LEAF : undefined);
}

/** Members that the schema does not declare are always fields themselves. */
function fieldsOfMembers({ declared, rest }: MembersShape, value: Members, self: boolean): FieldSet | undefined {
  let result: MutableFieldSet | undefined;
  for (const name in value) {
    const member = value[name];
    if (member === undefined) continue;
    const shape = declared.get(name);
    const set = fieldsOf(shape ?? rest!, member, shape === undefined || member === null || isEmptyMap(member));
    if (set === undefined) continue;
    result ??= emptySet(self);
    result[fieldElement(name)] = set;
  }
  if (result === undefined) return self ? LEAF : undefined;
  return sortMembers(result);
}

function isEmptyMap(value: unknown): boolean {
  if (typeof value !== "object" || !isPlainObject(value)) return false;
  for (const name in value) if (value[name] !== undefined) return false;
  return true;
}

/** Items with the same identity are one field without children. */
function fieldsOfItems(
  { items, elementOf }: ItemsShape,
  value: readonly unknown[],
  self: boolean,
): FieldSet | undefined {
  if (elementOf === undefined) return LEAF;
  if (value.length === 0) return self ? LEAF : undefined;
  const result = emptySet(self);
  let sorted = true;
  let last = "";
  for (const item of value) {
    const element = elementOf(item);
    result[element] = result[element] === undefined ? fieldsOf(items, item, true)! : LEAF;
    if (last !== "" && compareElements(last, element) > 0) sorted = false;
    last = element;
  }
  return sorted ? result : sortMembers(result);
}

function emptySet(self: boolean): MutableFieldSet {
  return self ? { [SELF]: LEAF } : {};
}
