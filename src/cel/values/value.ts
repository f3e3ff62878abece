/** Values of expressions: what each type is held as, and when two of them are equal. */
import { compareBytes, compareNumbers, isNumeric, Uint } from "./compare.ts";
import { dynType, formatType, type Type } from "./types.ts";

/**
 * | type | held as |
 * |---|---|
 * | int | `bigint`: exact in 64 bits, and as quick as numbers where expressions spend their time |
 * | uint | `Uint` |
 * | double | `number` |
 * | string, bool, null | as in JSON |
 * | bytes | `Uint8Array` |
 * | list | `List`, lazy over JSON |
 * | map, object | `MapValue`, lazy over JSON |
 * | timestamp, duration, type, optional, types of libraries | an `Opaque` each |
 */
export type Value = bigint | number | string | boolean | null | Uint8Array | Uint | List | MapValue | Opaque;

/** Why an expression has no value. Not an `Error`: it is made often (`a || b`), and where in our code says nothing. */
export class Failure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

export function fail(message: string): never {
  throw new Failure(message);
}

/** A value of a type with members of its own: equal to what says so itself. */
export abstract class Opaque {
  abstract readonly type: Type;
  abstract equals(other: Value): boolean;
  /** Its size for costs; 1 unless it has parts. */
  costSize(): number {
    return 1;
  }
}

export class TypeValue extends Opaque {
  readonly of: Type;
  readonly type: Type = { kind: "type" };

  constructor(of: Type) {
    super();
    this.of = of;
  }

  get name(): string {
    return runtimeName(this.of);
  }

  override equals(other: Value): boolean {
    return other instanceof TypeValue && other.name === this.name;
  }
}

/** The name of a type as values have it, without parameters. */
function runtimeName(type: Type): string {
  switch (type.kind) {
    case "null":
      return "null_type";
    case "timestamp":
      return "google.protobuf.Timestamp";
    case "duration":
      return "google.protobuf.Duration";
    case "opaque":
      return type.name;
    case "list":
    case "map":
    case "type":
      return type.kind;
    default:
      return formatType(type);
  }
}

/**
 * A value of more parts than this has none. Parts that occur often count as often: lists of one list twice, of one of
 * those twice, and so on, take no memory, but whoever goes through them never comes to an end.
 */
const WEIGHT_MAX = 2 ** 22;

export function weightOf(value: Value): number {
  if (value instanceof List || value instanceof MapValue) return value.weight;
  return value instanceof Optional && value.value !== undefined ? 1 + weightOf(value.value) : 1;
}

export function checkWeight(weight: number): number {
  return weight > WEIGHT_MAX ? fail(`value too large: ${weight} parts`) : weight;
}

export class Optional extends Opaque {
  static readonly none = new Optional(undefined);
  readonly type: Type = { kind: "opaque", name: "optional_type", parameters: [dynType] };
  readonly value: Value | undefined;

  private constructor(value: Value | undefined) {
    super();
    this.value = value;
  }

  static of(value: Value): Optional {
    return new Optional(value);
  }

  override equals(other: Value): boolean {
    if (!(other instanceof Optional)) return false;
    if (this.value === undefined || other.value === undefined) return this.value === other.value;
    return equal(this.value, other.value);
  }

  override costSize(): number {
    return this.value === undefined ? 1 : sizeForCost(this.value);
  }
}

export abstract class List implements Iterable<Value> {
  abstract readonly size: number;
  /** All parts at all depths; those of JSON count one, since requests bound them. */
  readonly weight: number = 1;
  /** Within 0 and size. */
  abstract at(index: number): Value;

  *[Symbol.iterator](): Iterator<Value> {
    for (let index = 0; index < this.size; index++) yield this.at(index);
  }

  /** Lists of JSON know more: sets and keyed lists are equal in any order. */
  equals(other: List): boolean {
    if (this.size !== other.size) return false;
    for (let index = 0; index < this.size; index++) {
      if (!equal(this.at(index), other.at(index))) return false;
    }
    return true;
  }

  concat(other: List): List {
    if (other.size === 0) return this;
    return this.size === 0 ? other : new ConcatList(this, other);
  }
}

export class ArrayList extends List {
  readonly items: readonly Value[];
  override readonly weight: number;

  constructor(items: readonly Value[]) {
    super();
    this.items = items;
    let weight = 1;
    for (const item of items) weight += weightOf(item);
    this.weight = checkWeight(weight);
  }

  get size(): number {
    return this.items.length;
  }

  at(index: number): Value {
    return this.items[index]!;
  }
}

/** `a + a + a` copies nothing: short expressions could otherwise fill the memory. */
class ConcatList extends List {
  readonly size: number;
  override readonly weight: number;
  readonly #first: List;
  readonly #second: List;

  constructor(first: List, second: List) {
    super();
    this.size = first.size + second.size;
    // Lists of JSON count their items here: their weight says nothing of them.
    this.weight = checkWeight(Math.max(this.size, first.weight + second.weight));
    this.#first = first;
    this.#second = second;
  }

  at(index: number): Value {
    const { size } = this.#first;
    return index < size ? this.#first.at(index) : this.#second.at(index - size);
  }

  override *[Symbol.iterator](): Iterator<Value> {
    yield* this.#first;
    yield* this.#second;
  }
}

export abstract class MapValue {
  abstract readonly size: number;
  /** As that of lists. */
  readonly weight: number = 1;
  /** What `type()` says: a map, or the type of an object. */
  abstract readonly type: Type;
  abstract get(key: Value): Value | undefined;
  abstract keys(): Iterable<Value>;

  has(key: Value): boolean {
    return this.get(key) !== undefined;
  }

  /** A member by its name; for objects it may have been escaped. */
  member(name: string): Value | undefined {
    return this.get(name);
  }

  hasMember(name: string): boolean {
    return this.has(name);
  }

  equals(other: MapValue): boolean {
    if (this.size !== other.size) return false;
    for (const key of this.keys()) {
      const theirs = other.get(key);
      if (theirs === undefined || !equal(this.get(key)!, theirs)) return false;
    }
    return true;
  }
}

/**
 * How many parts of values were compared since an evaluation began: whoever pays for a comparison takes the difference.
 * Where more are compared than any budget pays for, the comparison fails on its way.
 */
export const comparisonCounter = { parts: 0 };
const COMPARISONS_MAX = 20_000_000;

/** Equality of all values: numbers by what they are worth, whatever their type; different types are never equal. */
export function equal(a: Value, b: Value): boolean {
  if (++comparisonCounter.parts > COMPARISONS_MAX) fail("values too large to compare");
  if (isNumeric(a) && isNumeric(b)) return compareNumbers(a, b) === 0;
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (a instanceof List) return b instanceof List && (b.equals === List.prototype.equals ? a.equals(b) : b.equals(a));
  if (a instanceof MapValue) return b instanceof MapValue && a.equals(b);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0;
  if (a instanceof Opaque) return a.equals(b);
  return false;
}

/** How many parts a value has, for costs: characters, bytes, items, entries; 1 for all that has none. */
export function sizeForCost(value: Value): number {
  // UTF-16 units are at least as many as characters: never too cheap, and known at once.
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object") return 1;
  if (value instanceof List || value instanceof MapValue) return value.size;
  if (value instanceof Uint8Array) return value.length;
  return value instanceof Opaque ? value.costSize() : 1;
}

/** The type of a value: what `type(x)` gives. */
export function typeOfValue(value: Value): Type {
  switch (typeof value) {
    case "bigint":
      return { kind: "int" };
    case "number":
      return { kind: "double" };
    case "string":
      return { kind: "string" };
    case "boolean":
      return { kind: "bool" };
    default:
  }
  if (value === null) return { kind: "null" };
  if (value instanceof Uint) return { kind: "uint" };
  if (value instanceof Uint8Array) return { kind: "bytes" };
  if (value instanceof List) return { kind: "list", element: dynType };
  return value.type;
}
