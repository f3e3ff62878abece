import { internFieldsV1 } from "../../value/fields-v1-cache.ts";
import { isPlainObject } from "../../value/plain-object.ts";
import {
  canonicalize,
  elementsBefore,
  type FieldSet,
  isEmptySet,
  isOnlySelf,
  LEAF,
  type MutableFieldSet,
  SELF,
} from "./field-set.ts";
import { canonicalElement } from "./path-element.ts";

/** Results for interned FieldsV1 objects, which are parsed repeatedly. */
const parsedSets = new WeakMap<object, FieldSet>();

/**
 * Parses FieldsV1 from a request or the store into a canonical set. Drops elements of unknown types. Throws a
 * `SyntaxError` when the value is not valid FieldsV1.
 */
export function parseFields(fields: unknown): FieldSet {
  if (fields === null || fields === undefined) return LEAF;
  if (!isPlainObject(fields)) throw new SyntaxError("fields are an object");
  const interned = internFieldsV1(fields);
  let set = parsedSets.get(interned);
  if (set === undefined) {
    set = internFieldsV1(canonicalize(parseSet(interned)));
    parsedSets.set(interned, set);
  }
  return set;
}

function parseSet(fields: Readonly<Record<string, unknown>>): FieldSet {
  // Most sets are canonical: they are copied from the first element that differs.
  let result: MutableFieldSet | undefined;
  for (const text of Object.keys(fields)) {
    const element = text === SELF ? SELF : canonicalElement(text);
    const below = fields[text];
    const next = element === SELF || below === null ? LEAF : below;
    if (!isPlainObject(next)) throw new SyntaxError(`${text} leads to no object`);
    const set = isEmptySet(next as FieldSet) ? LEAF : parseSet(next);
    const parsed = isOnlySelf(set) ? LEAF : set;
    if (result === undefined && element === text && parsed === below) continue;
    result ??= elementsBefore(fields as FieldSet, text);
    if (element !== undefined) result[element] = parsed;
  }
  return result ?? (fields as FieldSet);
}
