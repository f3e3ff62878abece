/** `+ - * / %` and unary minus: int and uint are 64-bit, and overflow fails. */
import { functionOf, type Library, overload } from "../functions.ts";
import { Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import {
  bytesType,
  doubleType,
  durationType,
  intType,
  listType,
  parameterType,
  stringType,
  timestampType,
  uintType,
} from "../values/types.ts";
import { fail, type List } from "../values/value.ts";

export const INT_MAX = 2n ** 63n - 1n;
export const INT_MIN = -(2n ** 63n);
export const UINT_MAX = 2n ** 64n - 1n;

export function toInt(value: bigint): bigint {
  return value > INT_MAX || value < INT_MIN ? fail("integer overflow") : value;
}

export function toUint(value: bigint): Uint {
  return value > UINT_MAX || value < 0n ? fail("unsigned integer overflow") : new Uint(value);
}

function divide(a: bigint, b: bigint): bigint {
  return b === 0n ? fail("division by zero") : a / b;
}

function modulo(a: bigint, b: bigint): bigint {
  return b === 0n ? fail("modulus by zero") : a % b;
}

const listOfA = listType(parameterType("A"));
const ints = [intType, intType];
const uints = [uintType, uintType];
const doubles = [doubleType, doubleType];

function joinBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  return Buffer.concat([a, b]);
}

const addFunction = functionOf(
  "_+_",
  overload("add_bytes", [bytesType, bytesType], bytesType, joinBytes),
  overload("add_double", doubles, doubleType, (a: number, b: number) => a + b),
  overload(
    "add_duration_duration",
    [durationType, durationType],
    durationType,
    (a: Duration, b: Duration) => new Duration(a.nanos + b.nanos),
  ),
  overload(
    "add_duration_timestamp",
    [durationType, timestampType],
    timestampType,
    (a: Duration, b: Timestamp) => new Timestamp(a.nanos + b.nanos),
  ),
  overload(
    "add_timestamp_duration",
    [timestampType, durationType],
    timestampType,
    (a: Timestamp, b: Duration) => new Timestamp(a.nanos + b.nanos),
  ),
  overload("add_int64", ints, intType, (a: bigint, b: bigint) => toInt(a + b)),
  overload("add_list", [listOfA, listOfA], listOfA, (a: List, b: List) => a.concat(b)),
  overload("add_string", [stringType, stringType], stringType, (a: string, b: string) => a + b),
  overload("add_uint64", uints, uintType, (a: Uint, b: Uint) => toUint(a.value + b.value)),
);

const subtractFunction = functionOf(
  "_-_",
  overload("subtract_double", doubles, doubleType, (a: number, b: number) => a - b),
  overload(
    "subtract_duration_duration",
    [durationType, durationType],
    durationType,
    (a: Duration, b: Duration) => new Duration(a.nanos - b.nanos),
  ),
  overload("subtract_int64", ints, intType, (a: bigint, b: bigint) => toInt(a - b)),
  overload(
    "subtract_timestamp_duration",
    [timestampType, durationType],
    timestampType,
    (a: Timestamp, b: Duration) => new Timestamp(a.nanos - b.nanos),
  ),
  overload(
    "subtract_timestamp_timestamp",
    [timestampType, timestampType],
    durationType,
    (a: Timestamp, b: Timestamp) => new Duration(a.nanos - b.nanos),
  ),
  overload("subtract_uint64", uints, uintType, (a: Uint, b: Uint) => toUint(a.value - b.value)),
);

const multiplyFunction = functionOf(
  "_*_",
  overload("multiply_double", doubles, doubleType, (a: number, b: number) => a * b),
  overload("multiply_int64", ints, intType, (a: bigint, b: bigint) => toInt(a * b)),
  overload("multiply_uint64", uints, uintType, (a: Uint, b: Uint) => toUint(a.value * b.value)),
);

const divideFunction = functionOf(
  "_/_",
  overload("divide_double", doubles, doubleType, (a: number, b: number) => a / b),
  overload("divide_int64", ints, intType, (a: bigint, b: bigint) => toInt(divide(a, b))),
  overload("divide_uint64", uints, uintType, (a: Uint, b: Uint) => toUint(divide(a.value, b.value))),
);

const moduloFunction = functionOf(
  "_%_",
  overload("modulo_int64", ints, intType, (a: bigint, b: bigint) => {
    // The quotient overflows, so that cel-go fails for the remainder as well.
    return a === INT_MIN && b === -1n ? fail("integer overflow") : modulo(a, b);
  }),
  overload("modulo_uint64", uints, uintType, (a: Uint, b: Uint) => toUint(modulo(a.value, b.value))),
);

const negateFunction = functionOf(
  "-_",
  overload("negate_double", [doubleType], doubleType, (a: number) => -a),
  overload("negate_int64", [intType], intType, (a: bigint) => toInt(-a)),
);

export const arithmetic: Library = {
  functions: [addFunction, subtractFunction, multiplyFunction, divideFunction, moduloFunction, negateFunction],
};
