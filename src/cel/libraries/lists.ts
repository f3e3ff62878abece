/** List functions: `isSorted`, `sum`, `min`, `max`, `indexOf`, and sets. */
import { type FunctionDeclaration, functionOf, type Library, method, overload } from "../functions.ts";
import { Uint } from "../values/compare.ts";
import { Duration } from "../values/time-value.ts";
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  intType,
  listType,
  parameterType,
  stringType,
  type Type,
  timestampType,
  uintType,
} from "../values/types.ts";
import { equal, fail, type List, type Value } from "../values/value.ts";
import { toInt, toUint } from "./arithmetic.ts";
import { compare } from "./comparison.ts";

const summable: readonly (readonly [string, Type])[] = [
  ["int", intType],
  ["uint", uintType],
  ["double", doubleType],
  ["duration", durationType],
];
const comparable: readonly (readonly [string, Type])[] = [
  ["int", intType],
  ["uint", uintType],
  ["double", doubleType],
  ["bool", boolType],
  ["duration", durationType],
  ["timestamp", timestampType],
  ["string", stringType],
  ["bytes", bytesType],
];

function isSorted(list: List): boolean {
  let before: Value | undefined;
  for (const item of list) {
    if (before !== undefined && compare(before, item) > 0) return false;
    before = item;
  }
  return true;
}

/** `zero` is the sum of an empty list of the type. */
function sumFunction(zero: Value): (list: List) => Value {
  return (list) => {
    let total = zero;
    for (const item of list) total = add(total, item);
    return total;
  };
}

function add(a: Value, b: Value): Value {
  if (typeof a === "bigint" && typeof b === "bigint") return toInt(a + b);
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (a instanceof Uint && b instanceof Uint) return toUint(a.value + b.value);
  if (a instanceof Duration && b instanceof Duration) return new Duration(a.nanos + b.nanos);
  return fail("no such overload");
}

const zeros: Readonly<Record<string, Value>> = { int: 0n, uint: new Uint(0n), double: 0, duration: new Duration(0n) };

function extremeFunction(name: "min" | "max", sign: 1 | -1): FunctionDeclaration {
  const find = (list: List): Value => {
    let best: Value | undefined;
    for (const item of list) if (best === undefined || compare(item, best) * sign > 0) best = item;
    return best === undefined ? fail(`${name} called on empty list`) : best;
  };
  return functionOf(
    name,
    ...comparable.map(([type, each]) => method(`list_${type}_${name}_${type}`, [listType(each)], each, find)),
  );
}

function indexOf(list: List, item: Value): bigint {
  let index = 0n;
  for (const each of list) {
    if (equal(each, item)) return index;
    index++;
  }
  return -1n;
}

function lastIndexOf(list: List, item: Value): bigint {
  let last = -1n;
  let index = 0n;
  for (const each of list) {
    if (equal(each, item)) last = index;
    index++;
  }
  return last;
}

const a = parameterType("A");
const listOfA = listType(a);

export const lists: Library = {
  functions: [
    functionOf(
      "isSorted",
      ...comparable.map(([type, each]) => method(`list_${type}_is_sorted_bool`, [listType(each)], boolType, isSorted)),
    ),
    functionOf(
      "sum",
      ...summable.map(([type, each]) =>
        method(`list_${type}_sum_${type}`, [listType(each)], each, sumFunction(zeros[type]!)),
      ),
    ),
    extremeFunction("max", 1),
    extremeFunction("min", -1),
    functionOf("indexOf", method("list_a_index_of_int", [listOfA, a], intType, indexOf)),
    functionOf("lastIndexOf", method("list_a_last_index_of_int", [listOfA, a], intType, lastIndexOf)),
  ],
};

function contains(list: List, other: List): boolean {
  for (const item of other) if (indexOf(list, item) < 0n) return false;
  return true;
}

function intersects(list: List, other: List): boolean {
  for (const item of list) if (indexOf(other, item) >= 0n) return true;
  return false;
}

const pair = [listOfA, listOfA];

export const sets: Library = {
  functions: [
    functionOf("sets.contains", overload("list_sets_contains_list", pair, boolType, contains)),
    functionOf("sets.intersects", overload("list_sets_intersects_list", pair, boolType, intersects)),
    functionOf(
      "sets.equivalent",
      overload("list_sets_equivalent_list", pair, boolType, (list: List, other: List) => {
        return contains(list, other) && contains(other, list);
      }),
    ),
  ],
};
