/** Maps that expressions build. */
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

  /** Fails when a key comes twice, or is of a type that is none. */
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
  const held = mapKey(key);
  if (entries.has(held)) fail(`Failed with repeated key: ${displayKey(key)}`);
  entries.set(held, entry);
}

function displayKey(key: Value): string {
  return key instanceof Uint ? String(key.value) : String(key);
}

/** Keys that are equal are held alike: 1, 1u and 1.0. Undefined for what is no key. */
function mapKey(key: Value): string | bigint | boolean | undefined {
  if (typeof key === "string" || typeof key === "bigint" || typeof key === "boolean") return key;
  if (key instanceof Uint) return key.value;
  return typeof key === "number" && Number.isInteger(key) ? BigInt(key) : undefined;
}
