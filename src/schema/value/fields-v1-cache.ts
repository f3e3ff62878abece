/**
 * Interns FieldsV1 values (`managedFields`) and their JSON text: many objects have equal sets, which then share one
 * frozen value. Decoding and encoding an object would otherwise spend most of the time on these sets.
 */
import { deepFreeze } from "./freeze.ts";

const sets = new Map<string, object>();
const texts = new WeakMap<object, string>();
/** Frozen sets that are too long for the cache. */
const longSets = new WeakSet<object>();
/** The oldest are evicted first. */
const SETS_MAX = 1000;
/** In characters. Longer sets are not cached. */
const LENGTH_MAX = 8192;

/** Throws a `SyntaxError` when the text is not JSON. */
export function parseFieldsV1(text: string): unknown {
  const cached = sets.get(text);
  if (cached !== undefined) return cached;
  const set: unknown = JSON.parse(text);
  return typeof set === "object" && set !== null ? cacheSet(text, set) : set;
}

export function stringifyFieldsV1(set: unknown): string {
  return (texts.get(set as object) ?? JSON.stringify(set)) || "null";
}

/** Returns the shared value for all sets with the same text. Members in another order make another set. */
export function internFieldsV1<S extends object>(set: S): S {
  if (texts.has(set) || longSets.has(set)) return set;
  const text = JSON.stringify(set);
  return (sets.get(text) as S | undefined) ?? cacheSet(text, set);
}

function cacheSet<S extends object>(text: string, set: S): S {
  deepFreeze(set);
  if (text.length > LENGTH_MAX) {
    longSets.add(set);
    return set;
  }
  if (sets.size >= SETS_MAX) sets.delete(sets.keys().next().value!);
  sets.set(text, set);
  texts.set(set, text);
  return set;
}
