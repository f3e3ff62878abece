/**
 * Sets of managed fields (FieldsV1), of which many objects have the same: they share one, which is frozen, and its
 * text. Reading and writing an object would otherwise be mostly the reading and writing of its sets.
 */
import { deepFreeze } from "./freeze.ts";

const sets = new Map<string, object>();
const texts = new WeakMap<object, string>();
/** The oldest are forgotten first. */
const SETS_MAX = 1000;
/** Longer ones are not worth the memory. */
const LENGTH_MAX = 8192;

/** Throws a `SyntaxError` for text that is no JSON. */
export function parseFieldsV1(text: string): unknown {
  const known = sets.get(text);
  if (known !== undefined) return known;
  const set: unknown = JSON.parse(text);
  return typeof set === "object" && set !== null ? cacheSet(text, set) : set;
}

export function stringifyFieldsV1(set: unknown): string {
  return (texts.get(set as object) ?? JSON.stringify(set)) || "null";
}

/** The set that stands for all that read the same. Members in another order are another set. */
export function internFieldsV1<S extends object>(set: S): S {
  if (texts.has(set)) return set;
  const text = JSON.stringify(set);
  return (sets.get(text) as S | undefined) ?? cacheSet(text, set);
}

function cacheSet<S extends object>(text: string, set: S): S {
  deepFreeze(set);
  if (text.length > LENGTH_MAX) return set;
  if (sets.size >= SETS_MAX) sets.delete(sets.keys().next().value!);
  sets.set(text, set);
  texts.set(set, text);
  return set;
}
