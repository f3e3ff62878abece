/**
 * Interns FieldsV1 values (`managedFields`) and their JSON text: many objects have equal sets, which then share one
 * frozen value. Decoding and encoding an object would otherwise spend most of the time on these sets.
 */
import { stringifyExact } from "../json/exact-numbers.ts";
import { deepFreeze } from "./freeze.ts";

const sets = new Map<string, object>();
const texts = new WeakMap<object, string>();
/** The sets that are too long for the cache, of the latest writes: each set is encoded and decoded soon. */
const recentLongSets = new Map<string, object>();
const LONG_SETS_MAX = 4;
/** Frozen sets that are too long for the cache. */
const longSets = new WeakSet<object>();
/** The oldest are evicted first. */
const SETS_MAX = 1000;
/** In characters. Longer sets are not cached. */
const LENGTH_MAX = 8192;

/** The value of a member that has no others below it, shared by all sets. */
export const emptyFields: Readonly<Record<string, never>> = Object.freeze({});

/** Throws a `SyntaxError` when the text is not JSON. */
export function parseFieldsV1(text: string): unknown {
  const cached = sets.get(text) ?? recentLongSets.get(text);
  if (cached !== undefined) return cached;
  const set: unknown = JSON.parse(text);
  return typeof set === "object" && set !== null ? cacheSet(text, shareEmptyFields(set)) : set;
}

/** Replaces the empty members of a set that was just parsed: most members are empty. */
function shareEmptyFields(set: object): object {
  let isEmpty = true;
  const members = set as Record<string, unknown>;
  for (const name in members) {
    isEmpty = false;
    const below = members[name];
    if (typeof below === "object" && below !== null) members[name] = shareEmptyFields(below);
  }
  return isEmpty && !Array.isArray(set) ? emptyFields : set;
}

export function stringifyFieldsV1(set: unknown): string {
  return (texts.get(set as object) ?? stringifyExact(set)) || "null";
}

/** Returns the shared value for all sets with the same text. Members in another order make another set. */
export function internFieldsV1<S extends object>(set: S): S {
  if (texts.has(set) || longSets.has(set)) return set;
  const text = stringifyExact(set);
  return ((sets.get(text) ?? recentLongSets.get(text)) as S | undefined) ?? cacheSet(text, set);
}

function cacheSet<S extends object>(text: string, set: S): S {
  deepFreeze(set);
  if (text.length > LENGTH_MAX) {
    longSets.add(set);
    if (recentLongSets.size >= LONG_SETS_MAX) dropOldestLongSet();
    recentLongSets.set(text, set);
    texts.set(set, text);
    return set;
  }
  if (sets.size >= SETS_MAX) sets.delete(sets.keys().next().value!);
  sets.set(text, set);
  texts.set(set, text);
  return set;
}

function dropOldestLongSet(): void {
  const [oldest] = recentLongSets;
  if (oldest === undefined) return;
  const [text, set] = oldest;
  recentLongSets.delete(text);
  texts.delete(set);
}

/** Drops the sets of the latest writes, of which each may have megabytes. */
export function releaseLongSets(): void {
  while (recentLongSets.size > 0) dropOldestLongSet();
}
