/** CEL values: their representations and equality. */
import { compareBytes, compareNumbers, isNumeric, Uint } from "./compare.ts";
import { dynType, formatType, type Type } from "./types.ts";

/**
 * | type | representation |
 * |---|---|
 * | int | `bigint`: exact in 64 bits, and as fast as `number` in typical expressions |
 * | uint | `Uint` |
 * | double | `number` |
 * | string, bool, null | as in JSON |
 * | bytes | `Uint8Array` |
 * | list | `List`, lazy over JSON |
 * | map, object | `MapValue`, lazy over JSON |
 * | timestamp, duration, type, optional, types of libraries | subclasses of `Opaque` |
 */
export type Value = bigint | number | string | boolean | null | Uint8Array | Uint | List | MapValue | Opaque;

/** An evaluation error. Not an `Error`, since it is thrown often (`a || b`) and needs no stack trace. */
export class Failure {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

export function fail(message: string): never {
  throw new Failure(message);
}

/** A value of a type with its own representation and equality. */
export abstract class Opaque {
  abstract readonly type: Type;
  abstract equals(other: Value): boolean;
  /** The size for costs. */
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

/** The name of a type without parameters, as `type()` returns it. */
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
 * The maximum number of parts of a value, shared parts counted each time: a list that contains one list twice, which
 * contains another list twice, and so on, takes little memory but exponential time to traverse.
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
  /** The number of parts at all depths; a JSON value counts as one, since the request bounds its size. */
  readonly weight: number = 1;
  /** The index must be within the list. */
  abstract at(index: number): Value;

  *[Symbol.iterator](): Iterator<Value> {
    for (let index = 0; index < this.size; index++) yield this.at(index);
  }

  /** Overridden by set and map lists, which are equal in any order. */
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

/** The concatenation of two lists without a copy, since short expressions could otherwise exhaust the memory. */
class ConcatList extends List {
  readonly size: number;
  override readonly weight: number;
  readonly #first: List;
  readonly #second: List;

  constructor(first: List, second: List) {
    super();
    this.size = first.size + second.size;
    // The weight of JSON lists does not include their items, so that the size counts as well.
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
  /** As `List.weight`. */
  readonly weight: number = 1;
  /** The result of `type()`: a map, or the type of an object. */
  abstract readonly type: Type;
  abstract get(key: Value): Value | undefined;
  abstract keys(): Iterable<Value>;

  has(key: Value): boolean {
    return this.get(key) !== undefined;
  }

  /** A member by name, which is escaped for objects. */
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
 * The number of compared parts since the start of an evaluation; callers charge the difference. A comparison fails when
 * it exceeds what any budget allows.
 */
export const comparisonCounter = { parts: 0 };
const COMPARISONS_MAX = 20_000_000;

/** Equality of values: numbers are compared across types; values of other different types are never equal. */
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

/** The size of a value for costs: characters, bytes, items or entries; 1 for scalars. */
export function sizeForCost(value: Value): number {
  // UTF-16 code units are an upper bound of characters and available in constant time.
  if (typeof value === "string") return value.length;
  if (value === null || typeof value !== "object") return 1;
  if (value instanceof List || value instanceof MapValue) return value.size;
  if (value instanceof Uint8Array) return value.length;
  return value instanceof Opaque ? value.costSize() : 1;
}

/** The type of a value, as `type(x)` returns it. */
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
