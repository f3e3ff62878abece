/** Type conversions such as `int(x)` and `string(x)`, and type names. */
import { getMember } from "../../schema/value/plain-object.ts";
import { parseDuration } from "../../schema/value/time.ts";
import { type FunctionDeclaration, functionOf, type Library, overload } from "../functions.ts";
import { Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  optionalType,
  parameterType,
  stringType,
  type Type,
  timestampType,
  typeType,
  uintType,
} from "../values/types.ts";
import { fail, TypeValue, typeOfValue, type Value } from "../values/value.ts";
import { toInt, toUint } from "./arithmetic.ts";

function failConversion(from: string, to: string): never {
  return fail(`type conversion error from '${from}' to '${to}'`);
}

const boolTexts: Readonly<Record<string, boolean>> = {
  "1": true,
  t: true,
  T: true,
  true: true,
  TRUE: true,
  True: true,
  "0": false,
  f: false,
  F: false,
  false: false,
  FALSE: false,
  False: false,
};

function doubleToInt(value: number): bigint {
  // 2^63 is a double and the largest int is not, so that both bounds are exclusive.
  if (!Number.isFinite(value) || value <= -(2 ** 63) || value >= 2 ** 63) return fail("integer overflow");
  return BigInt(Math.trunc(value));
}

function doubleToUint(value: number): Uint {
  if (!Number.isFinite(value) || value < 0 || value >= 2 ** 64) return fail("unsigned integer overflow");
  return new Uint(BigInt(Math.trunc(value)));
}

function parseInt64(text: string): bigint {
  return /^[+-]?\d{1,30}$/.test(text) ? toInt(BigInt(text.replace(/^\+/, ""))) : failConversion("string", "int");
}

function parseUint64(text: string): Uint {
  return /^\d{1,30}$/.test(text) ? toUint(BigInt(text)) : failConversion("string", "uint");
}

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const specialDoubles: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
};

function parseDouble(text: string): number {
  const word = text.replace(/^[+-]/, "").toLowerCase();
  const special = getMember(specialDoubles, word);
  if (special !== undefined) return text.startsWith("-") ? -special : special;
  if (!decimal.test(text)) return failConversion("string", "double");
  const value = Number(text);
  return Number.isFinite(value) ? value : failConversion("string", "double");
}

/** Numbers with at least this power of ten are formatted with an exponent. */
const PLAIN_POWERS = 6;

/** As Go's `%g`: the shortest text that parses to the number. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa = "", exponent = "0"] = value.toExponential().split("e");
  const power = Number(exponent);
  if (power >= -4 && power < PLAIN_POWERS) return String(value);
  const size = Math.abs(power);
  return `${mantissa}e${power < 0 ? "-" : "+"}${size < 10 ? "0" : ""}${size}`;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function bytesToText(value: Uint8Array): string {
  try {
    return decoder.decode(value);
  } catch {
    return fail("invalid UTF-8 in bytes, cannot convert to string");
  }
}

function identity(value: Value): Value {
  return value;
}

const conversions: readonly FunctionDeclaration[] = [
  functionOf(
    "type",
    overload("type", [parameterType("A")], typeType(parameterType("A")), (value: Value) => {
      return new TypeValue(typeOfValue(value));
    }),
  ),
  functionOf("dyn", overload("to_dyn", [parameterType("A")], dynType, identity)),
  functionOf(
    "bool",
    overload("bool_to_bool", [boolType], boolType, identity),
    overload(
      "string_to_bool",
      [stringType],
      boolType,
      (text: string) => getMember(boolTexts, text) ?? failConversion("string", "bool"),
    ),
  ),
  functionOf(
    "bytes",
    overload("bytes_to_bytes", [bytesType], bytesType, identity),
    overload("string_to_bytes", [stringType], bytesType, (text: string) => new TextEncoder().encode(text)),
  ),
  functionOf(
    "double",
    overload("double_to_double", [doubleType], doubleType, identity),
    overload("int64_to_double", [intType], doubleType, (value: bigint) => Number(value)),
    overload("string_to_double", [stringType], doubleType, parseDouble),
    overload("uint64_to_double", [uintType], doubleType, (value: Uint) => Number(value.value)),
  ),
  functionOf(
    "duration",
    overload("duration_to_duration", [durationType], durationType, identity),
    // Declared in cel-go, but without a conversion.
    overload("int64_to_duration", [intType], durationType, () => failConversion("int", "google.protobuf.Duration")),
    overload("string_to_duration", [stringType], durationType, (text: string) => {
      const nanos = parseDuration(text);
      return nanos === undefined ? failConversion("string", "google.protobuf.Duration") : new Duration(nanos);
    }),
  ),
  functionOf(
    "int",
    overload("int64_to_int64", [intType], intType, identity),
    overload("double_to_int64", [doubleType], intType, doubleToInt),
    overload("duration_to_int64", [durationType], intType, (value: Duration) => value.nanos),
    overload("string_to_int64", [stringType], intType, parseInt64),
    overload("timestamp_to_int64", [timestampType], intType, (value: Timestamp) => value.seconds),
    overload("uint64_to_int64", [uintType], intType, (value: Uint) => toInt(value.value)),
  ),
  functionOf(
    "string",
    overload("string_to_string", [stringType], stringType, identity),
    overload("bool_to_string", [boolType], stringType, (value: boolean) => String(value)),
    overload("bytes_to_string", [bytesType], stringType, bytesToText),
    overload("double_to_string", [doubleType], stringType, formatDouble),
    overload("duration_to_string", [durationType], stringType, (value: Duration) => value.text()),
    overload("int64_to_string", [intType], stringType, (value: bigint) => String(value)),
    overload("timestamp_to_string", [timestampType], stringType, (value: Timestamp) => value.text()),
    overload("uint64_to_string", [uintType], stringType, (value: Uint) => String(value.value)),
  ),
  functionOf(
    "timestamp",
    overload("timestamp_to_timestamp", [timestampType], timestampType, identity),
    overload("int64_to_timestamp", [intType], timestampType, (value: bigint) => new Timestamp(value * 1_000_000_000n)),
    overload("string_to_timestamp", [stringType], timestampType, (text: string) => {
      return Timestamp.parse(text) ?? failConversion("string", "google.protobuf.Timestamp");
    }),
  ),
  functionOf(
    "uint",
    overload("uint64_to_uint64", [uintType], uintType, identity),
    overload("double_to_uint64", [doubleType], uintType, doubleToUint),
    overload("int64_to_uint64", [intType], uintType, (value: bigint) => toUint(value)),
    overload("string_to_uint64", [stringType], uintType, parseUint64),
  ),
];

const typeNames: Readonly<Record<string, Type>> = {
  bool: boolType,
  bytes: bytesType,
  double: doubleType,
  "google.protobuf.Duration": durationType,
  "google.protobuf.Timestamp": timestampType,
  int: intType,
  list: listType(dynType),
  map: mapType(dynType, dynType),
  null_type: nullType,
  optional_type: optionalType(dynType),
  string: stringType,
  type: typeType(),
  uint: uintType,
};

/** The constant of a type name. */
export function typeConstant(type: Type): { readonly type: Type; readonly value: Value } {
  return { type: typeType(type), value: new TypeValue(type) };
}

export const conversion: Library = {
  functions: conversions,
  constants: Object.fromEntries(Object.entries(typeNames).map(([name, type]) => [name, typeConstant(type)])),
};
