/** Maps that expressions create. */
import { Uint } from "./compare.ts";
import { dynType, type Type } from "./types.ts";
import { checkWeight, fail, MapValue, type Value, weightOf } from "./value.ts";

const plainMap: Type = { kind: "map", key: dynType, value: dynType };

type Entry = readonly [Value, Value];

export class EntryMap extends MapValue {
  readonly type = plainMap;
  readonly #entries: Map<unknown, Entry>;
  override readonly weight: number;

  private constructor(entries: Map<unknown, Entry>) {
    super();
    this.#entries = entries;
    let weight = 1;
    for (const [, value] of entries.values()) weight += 1 + weightOf(value);
    this.weight = checkWeight(weight);
  }

  static readonly empty = new EntryMap(new Map());

  /** Fails for duplicate keys and unsupported key types. */
  static of(entries: Iterable<Entry>): EntryMap {
    const byKey = new Map<unknown, Entry>();
    for (const entry of entries) insertEntry(byKey, entry);
    return new EntryMap(byKey);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    return this.#entries.get(mapKey(key))?.[1];
  }

  *keys(): Iterable<Value> {
    for (const [key] of this.#entries.values()) yield key;
  }
}

function insertEntry(entries: Map<unknown, Entry>, entry: Entry): void {
  const [key] = entry;
  if (typeof key !== "string" && typeof key !== "bigint" && typeof key !== "boolean" && !(key instanceof Uint)) {
    fail("unsupported key type");
  }
  const normalized = mapKey(key);
  if (entries.has(normalized)) fail(`Failed with repeated key: ${displayKey(key)}`);
  entries.set(normalized, entry);
}

function displayKey(key: Value): string {
  return key instanceof Uint ? String(key.value) : String(key);
}

/** Normalizes keys, since 1, 1u and 1.0 are equal. Undefined for values that cannot be keys. */
function mapKey(key: Value): string | bigint | boolean | undefined {
  if (typeof key === "string" || typeof key === "bigint" || typeof key === "boolean") return key;
  if (key instanceof Uint) return key.value;
  return typeof key === "number" && Number.isInteger(key) ? BigInt(key) : undefined;
}
