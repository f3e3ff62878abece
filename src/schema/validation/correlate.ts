/** Finds the part of an old value that corresponds to a part of the new one, for ratcheting and transition rules. */
import { canonicalJson } from "../json/canonical-json.ts";
import type { ListSchema } from "../schema.ts";
import { getMember, isPlainObject } from "../value/plain-object.ts";

/** The old member; undefined when there is none. Members of atomic objects correspond by their names too. */
export function correlateMember(old: unknown, name: string): unknown {
  return isPlainObject(old) ? getMember(old, name) : undefined;
}

/** Returns a function that finds the old item of an item by its keys; only items of map lists can be correlated. */
export function correlateItems(schema: ListSchema, old: unknown): (item: unknown) => unknown {
  const { mapKeys } = schema;
  if (schema.listType !== "map" || mapKeys === undefined || !Array.isArray(old)) return () => undefined;
  let byKeys: ReadonlyMap<string, unknown> | undefined;
  return (item) => {
    byKeys ??= new Map(old.map((each) => [keysOf(mapKeys, each), each]));
    return byKeys.get(keysOf(mapKeys, item));
  };
}

function keysOf(mapKeys: readonly string[], item: unknown): string {
  return canonicalJson(
    isPlainObject(item) ? mapKeys.map((key) => (Object.hasOwn(item, key) ? item[key] : null)) : null,
  );
}
