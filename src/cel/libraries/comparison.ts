/** `== != < <= > >= in`, the logical operators, `[]`, and `size`. */

import { elementOf } from "../evaluate/member-access.ts";
import { type FunctionDeclaration, functionOf, type Library, method, type Overload, overload } from "../functions.ts";
import { compareBytes, compareNumbers, compareStrings, isNumeric } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  intType,
  listType,
  mapType,
  optionalType,
  parameterType,
  stringType,
  type Type,
  timestampType,
  uintType,
} from "../values/types.ts";
import { equal, fail, type List, type MapValue, type Value } from "../values/value.ts";
import { countCharacters } from "./characters.ts";

/** Negative, zero or positive; fails for values without an order. */
export function compare(a: Value, b: Value): number {
  if (isNumeric(a) && isNumeric(b)) {
    const order = compareNumbers(a, b);
    return Number.isNaN(order) ? fail("NaN values cannot be ordered") : order;
  }
  if (typeof a === "string" && typeof b === "string") return compareStrings(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  if (a instanceof Timestamp && b instanceof Timestamp) return compareNumbers(a.nanos, b.nanos);
  if (a instanceof Duration && b instanceof Duration) return compareNumbers(a.nanos, b.nanos);
  return fail("no such overload");
}

/** Whether an order satisfies a relation; NaN satisfies none. */
type OrderPredicate = (order: number) => boolean;

const orderedTypes: readonly (readonly [string, Type])[] = [
  ["bool", boolType],
  ["int64", intType],
  ["uint64", uintType],
  ["double", doubleType],
  ["string", stringType],
  ["bytes", bytesType],
  ["timestamp", timestampType],
  ["duration", durationType],
];
const mixedTypes: readonly (readonly [string, Type, Type])[] = [
  ["int64_double", intType, doubleType],
  ["int64_uint64", intType, uintType],
  ["uint64_double", uintType, doubleType],
  ["uint64_int64", uintType, intType],
  ["double_int64", doubleType, intType],
  ["double_uint64", doubleType, uintType],
];

function relationFunction(name: string, id: string, test: OrderPredicate): FunctionDeclaration {
  const satisfies = (a: Value, b: Value): boolean => test(compare(a, b));
  const same = orderedTypes.map(([type, each]) => overload(`${id}_${type}`, [each, each], boolType, satisfies));
  const across = mixedTypes.map(([types, a, b]) => overload(`${id}_${types}`, [a, b], boolType, satisfies));
  return functionOf(name, ...same, ...across);
}

const a = parameterType("A");
const b = parameterType("B");
const listOfA = listType(a);
const mapOfAB = mapType(a, b);

/** A declaration for the type checker; the planner implements these operators. */
function declaredOnly(id: string, parameters: readonly Type[], result: Type): Overload {
  return overload(id, parameters, result, () => fail("no such overload"));
}

function inList(item: Value, list: List): boolean {
  for (const each of list) if (equal(each, item)) return true;
  return false;
}

function sizeFunction(): FunctionDeclaration {
  const each: readonly (readonly [string, Type, (value: never) => bigint])[] = [
    ["bytes", bytesType, (value: Uint8Array) => BigInt(value.length)],
    ["list", listOfA, (value: List) => BigInt(value.size)],
    ["map", mapOfAB, (value: MapValue) => BigInt(value.size)],
    ["string", stringType, (value: string) => BigInt(countCharacters(value))],
  ];
  return functionOf(
    "size",
    ...each.flatMap(([name, type, call]) => [
      overload(`size_${name}`, [type], intType, call),
      method(`${name}_size`, [type], intType, call),
    ]),
  );
}

export const comparison: Library = {
  functions: [
    functionOf("_==_", declaredOnly("equals", [a, a], boolType)),
    functionOf("_!=_", declaredOnly("not_equals", [a, a], boolType)),
    relationFunction("_<_", "less", (order) => order < 0),
    relationFunction("_<=_", "less_equals", (order) => order <= 0),
    relationFunction("_>_", "greater", (order) => order > 0),
    relationFunction("_>=_", "greater_equals", (order) => order >= 0),
    functionOf(
      "@in",
      overload("in_list", [a, listOfA], boolType, inList),
      overload("in_map", [a, mapOfAB], boolType, (key: Value, map: MapValue) => map.has(key)),
    ),
    functionOf("_&&_", declaredOnly("logical_and", [boolType, boolType], boolType)),
    functionOf("_||_", declaredOnly("logical_or", [boolType, boolType], boolType)),
    functionOf(
      "!_",
      overload("logical_not", [boolType], boolType, (value: boolean) => !value),
    ),
    functionOf("_?_:_", declaredOnly("conditional", [boolType, a, a], a)),
    functionOf("@not_strictly_false", declaredOnly("not_strictly_false", [boolType], boolType)),
    functionOf(
      "_[_]",
      overload("index_list", [listOfA, intType], a, elementOf),
      overload("index_map", [mapOfAB, a], b, elementOf),
      declaredOnly("optional_list_index_int", [optionalType(listOfA), intType], optionalType(a)),
      declaredOnly("optional_map_index_value", [optionalType(mapOfAB), a], optionalType(b)),
    ),
    functionOf(
      "_[?_]",
      declaredOnly("list_optindex_optional_int", [listOfA, intType], optionalType(a)),
      declaredOnly("optional_list_optindex_optional_int", [optionalType(listOfA), intType], optionalType(a)),
      declaredOnly("map_optindex_optional_value", [mapOfAB, a], optionalType(b)),
      declaredOnly("optional_map_optindex_optional_value", [optionalType(mapOfAB), a], optionalType(b)),
    ),
    sizeFunction(),
  ],
};
