/** `== != < <= > >= in`, the logical operators, `[]`, and `size`. */

import { elementOf } from "../evaluate/member-access.ts";
import { type FunctionDeclaration, functionOf, type Library, method, type Overload, overload } from "../functions.ts";
import { characters } from "../parse/source.ts";
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
  parameter,
  stringType,
  type Type,
  timestampType,
  uintType,
} from "../values/types.ts";
import { equal, fail, type List, type MapValue, type Value } from "../values/value.ts";

/** Negative, zero or positive; fails for what has no order. */
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
type Test = (order: number) => boolean;

const ordered: readonly (readonly [string, Type])[] = [
  ["bool", boolType],
  ["int64", intType],
  ["uint64", uintType],
  ["double", doubleType],
  ["string", stringType],
  ["bytes", bytesType],
  ["timestamp", timestampType],
  ["duration", durationType],
];
const mixed: readonly (readonly [string, Type, Type])[] = [
  ["int64_double", intType, doubleType],
  ["int64_uint64", intType, uintType],
  ["uint64_double", uintType, doubleType],
  ["uint64_int64", uintType, intType],
  ["double_int64", doubleType, intType],
  ["double_uint64", doubleType, uintType],
];

function relation(name: string, id: string, test: Test): FunctionDeclaration {
  const holds = (a: Value, b: Value): boolean => test(compare(a, b));
  const same = ordered.map(([type, each]) => overload(`${id}_${type}`, [each, each], boolType, holds));
  const across = mixed.map(([types, a, b]) => overload(`${id}_${types}`, [a, b], boolType, holds));
  return functionOf(name, ...same, ...across);
}

const a = parameter("A");
const b = parameter("B");
const listOfA = listType(a);
const mapOfAB = mapType(a, b);

/** Evaluated by the evaluator itself; here for their types. */
function special(id: string, parameters: readonly Type[], result: Type): Overload {
  return overload(id, parameters, result, () => fail("no such overload"));
}

function inList(item: Value, list: List): boolean {
  for (const each of list) if (equal(each, item)) return true;
  return false;
}

function sizes(): FunctionDeclaration {
  const each: readonly (readonly [string, Type, (value: never) => bigint])[] = [
    ["bytes", bytesType, (value: Uint8Array) => BigInt(value.length)],
    ["list", listOfA, (value: List) => BigInt(value.size)],
    ["map", mapOfAB, (value: MapValue) => BigInt(value.size)],
    ["string", stringType, (value: string) => BigInt(characters(value))],
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
    functionOf("_==_", special("equals", [a, a], boolType)),
    functionOf("_!=_", special("not_equals", [a, a], boolType)),
    relation("_<_", "less", (order) => order < 0),
    relation("_<=_", "less_equals", (order) => order <= 0),
    relation("_>_", "greater", (order) => order > 0),
    relation("_>=_", "greater_equals", (order) => order >= 0),
    functionOf(
      "@in",
      overload("in_list", [a, listOfA], boolType, inList),
      overload("in_map", [a, mapOfAB], boolType, (key: Value, map: MapValue) => map.has(key)),
    ),
    functionOf("_&&_", special("logical_and", [boolType, boolType], boolType)),
    functionOf("_||_", special("logical_or", [boolType, boolType], boolType)),
    functionOf(
      "!_",
      overload("logical_not", [boolType], boolType, (value: boolean) => !value),
    ),
    functionOf("_?_:_", special("conditional", [boolType, a, a], a)),
    functionOf("@not_strictly_false", special("not_strictly_false", [boolType], boolType)),
    functionOf(
      "_[_]",
      overload("index_list", [listOfA, intType], a, elementOf),
      overload("index_map", [mapOfAB, a], b, elementOf),
      special("optional_list_index_int", [optionalType(listOfA), intType], optionalType(a)),
      special("optional_map_index_value", [optionalType(mapOfAB), a], optionalType(b)),
    ),
    functionOf(
      "_[?_]",
      special("list_optindex_optional_int", [listOfA, intType], optionalType(a)),
      special("optional_list_optindex_optional_int", [optionalType(listOfA), intType], optionalType(a)),
      special("map_optindex_optional_value", [mapOfAB, a], optionalType(b)),
      special("optional_map_optindex_optional_value", [optionalType(mapOfAB), a], optionalType(b)),
    ),
    sizes(),
  ],
};
