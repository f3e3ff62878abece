/** Optional values: `optional.of(x)`, `a.?b`, `.orValue(y)`. */
import { functionOf, type Library, method, overload } from "../functions.ts";
import { isNumeric, Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { boolType, listType, optionalType, parameterType } from "../values/types.ts";
import { ArrayList, fail, List, MapValue, Optional, type Value } from "../values/value.ts";

const v = parameterType("V");
const optionalV = optionalType(v);
const listV = listType(v);

/** Removes the optionals without a value and unwraps the others. */
function unwrapOptionals(list: List): List {
  const items: Value[] = [];
  for (const item of list) {
    if (!(item instanceof Optional)) return fail("no such overload");
    if (item.value !== undefined) items.push(item.value);
  }
  return new ArrayList(items);
}

/** Whether this is the zero value of its type: 0, "", an empty list, null. */
function isZero(value: Value): boolean {
  if (value === null || value === "" || value === false) return true;
  if (isNumeric(value)) return Number(value instanceof Uint ? value.value : value) === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof List || value instanceof MapValue) return value.size === 0;
  if (value instanceof Optional) return value.value === undefined || isZero(value.value);
  if (value instanceof Duration) return value.nanos === 0n;
  // Go's zero time is the first instant of the year 1.
  return value instanceof Timestamp && value.seconds === -62_135_596_800n;
}

export const optional: Library = {
  functions: [
    functionOf(
      "optional.of",
      overload("optional_of", [v], optionalV, (value: Value) => Optional.of(value)),
    ),
    functionOf(
      "optional.ofNonZeroValue",
      overload("optional_ofNonZeroValue", [v], optionalV, (value: Value) => {
        return isZero(value) ? Optional.none : Optional.of(value);
      }),
    ),
    functionOf(
      "optional.none",
      overload("optional_none", [], optionalV, () => Optional.none),
    ),
    functionOf(
      "value",
      method("optional_value", [optionalV], v, ({ value }: Optional) => {
        return value === undefined ? fail("optional.none() dereference") : value;
      }),
    ),
    functionOf(
      "hasValue",
      method("optional_hasValue", [optionalV], boolType, (optional: Optional) => optional.value !== undefined),
    ),
    functionOf(
      "first",
      method("list_first", [listV], optionalV, (list: List) =>
        list.size > 0 ? Optional.of(list.at(0)) : Optional.none,
      ),
    ),
    functionOf(
      "last",
      method("list_last", [listV], optionalV, (list: List) => {
        return list.size > 0 ? Optional.of(list.at(list.size - 1)) : Optional.none;
      }),
    ),
    functionOf("optional.unwrap", overload("optional_unwrap", [listType(optionalV)], listV, unwrapOptionals)),
    functionOf("unwrapOpt", method("optional_unwrapOpt", [listType(optionalV)], listV, unwrapOptionals)),
    // Declarations for the type checker; the planner evaluates the argument only when the receiver is none.
    functionOf(
      "or",
      method("optional_or_optional", [optionalV, optionalV], optionalV, () => fail("no such overload")),
    ),
    functionOf(
      "orValue",
      method("optional_orValue_value", [optionalV, v], v, () => fail("no such overload")),
    ),
  ],
};
