import { isPlainObject, setMember } from "../value/plain-object.ts";
import { type FieldSet, isMember } from "./fieldpath/field-set.ts";
import { deduced, type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/** Removes the fields of the set from the value. A container that loses all members becomes null. */
export function removeItems(shape: Shape, value: unknown, fields: FieldSet): unknown {
  return walk(shape, value, fields, false);
}

/** Keeps only the fields of the set. */
export function extractItems(shape: Shape, value: unknown, fields: FieldSet): unknown {
  return walk(shape, value, fields, true);
}

function walk(shape: Shape, value: unknown, fields: FieldSet, extract: boolean): unknown {
  const resolved = resolveShape(shape, value);
  switch (resolved.kind) {
    case "members":
      return isPlainObject(value) ? walkMembers(resolved, value, fields, extract) : null;
    case "items":
      return Array.isArray(value) ? walkItems(resolved, value, fields, extract) : null;
    case "atomic":
      return extract ? value : null;
    default:
      return value;
  }
}

function walkMembers(
  { declared, rest }: MembersShape,
  value: Readonly<Record<string, unknown>>,
  fields: FieldSet,
  extract: boolean,
): unknown {
  const result: Record<string, unknown> = {};
  let kept = false;
  let changed = false;
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member === undefined) continue;
    const shape = declared.get(name) ?? rest;
    const next = walkOne(shape, member, fields[`f:${name}`], extract);
    if (next !== member) changed = true;
    if (next === undefined) continue;
    setMember(result, name, next);
    kept = true;
  }
  if (!kept) return null;
  return changed ? result : value;
}

function walkItems(shape: ItemsShape, value: readonly unknown[], fields: FieldSet, extract: boolean): unknown {
  const { elementOf } = shape;
  if (elementOf === undefined) return extract ? value : null;
  const result: unknown[] = [];
  for (const item of value) {
    const next = walkOne(shape.items, item, fields[elementOf(item)], extract);
    if (next !== undefined) result.push(next);
  }
  if (result.length === 0) return null;
  return result.length === value.length && result.every((item, index) => item === value[index]) ? value : result;
}

/** Returns undefined when nothing is left. `below` is the subtree of the value's element in the set. */
function walkOne(shape: Shape | undefined, value: unknown, below: FieldSet | undefined, extract: boolean): unknown {
  if (below === undefined) return extract ? undefined : value;
  if (isMember(below) && !extract) return undefined;
  return walk(shape ?? deduced, value, below, extract);
}
