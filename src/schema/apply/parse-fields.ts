import { deepFreeze } from "../freeze.ts";
import { isPlainObject } from "../plain.ts";
import { canonical, type FieldSet, isEmptySet, LEAF, type MutableFieldSet, SELF } from "./field-set.ts";
import { canonicalElement } from "./path-element.ts";

/** Sets that were met lately, by their text: many objects have the same, and every write reads those of one. */
const known = new Map<string, FieldSet>();
const KNOWN_MAX = 500;
/** Larger sets are not worth the memory. */
const KNOWN_LENGTH_MAX = 8192;

/**
 * FieldsV1 that somebody else wrote, as a set. Elements of kinds unknown here are dropped. Throws a `SyntaxError` for
 * what is none.
 */
export function parseFields(fields: unknown): FieldSet {
  if (fields === null || fields === undefined) return LEAF;
  if (!isPlainObject(fields)) throw new SyntaxError("fields are an object");
  const text = JSON.stringify(fields);
  return known.get(text) ?? remember(text, canonical(parsed(fields)));
}

/** One and the same object for equal sets, as far as it is remembered. Takes a canonical set. */
export function shared(set: FieldSet): FieldSet {
  const text = JSON.stringify(set);
  return known.get(text) ?? remember(text, set);
}

function remember(text: string, set: FieldSet): FieldSet {
  deepFreeze(set);
  if (text.length > KNOWN_LENGTH_MAX) return set;
  if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!);
  known.set(text, set);
  return set;
}

function parsed(fields: Readonly<Record<string, unknown>>): FieldSet {
  let changed = false;
  const result: MutableFieldSet = {};
  for (const text of Object.keys(fields)) {
    const element = text === SELF ? SELF : canonicalElement(text);
    const below = fields[text];
    const next = element === SELF || below === null ? LEAF : below;
    if (!isPlainObject(next)) throw new SyntaxError(`${text} leads to no object`);
    const set = isEmptySet(next as FieldSet) ? LEAF : parsed(next);
    if (element === undefined) changed = true;
    else result[element] = isOnlySelf(set) ? LEAF : set;
    if (element !== text || result[element] !== below) changed = true;
  }
  return changed ? result : (fields as FieldSet);
}

function isOnlySelf(set: FieldSet): boolean {
  return set[SELF] !== undefined && Object.keys(set).length === 1;
}
