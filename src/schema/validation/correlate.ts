/** Which part of an old value a part of a new one was: by name in objects and maps, by keys in keyed lists. */
import { canonicalJson } from "../json/canonical-json.ts";
import type { ListSchema, MapSchema, ObjectSchema } from "../schema.ts";
import { isPlainObject } from "../value/plain-object.ts";

/** Undefined where nothing was, or where the whole is one value whose parts come and go together. */
export function correlateMember(schema: ObjectSchema | MapSchema, old: unknown, name: string): unknown {
  if (schema.atomic === true || !isPlainObject(old) || !Object.hasOwn(old, name)) return undefined;
  return old[name];
}

/** Finds old items; only those of keyed lists are known again. */
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
