/** JSON of CEL values, for patches that expressions create. */
import { Uint } from "../values/compare.ts";
import { ObjectValue } from "../values/object-value.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { typeNameOf } from "../values/type-name.ts";
import { List, MapValue, Optional, TypeValue, type Value } from "../values/value.ts";

/** A value without JSON representation. */
export class NoJsonError extends Error {}

/** Integers beyond 2^53 stay `bigint`. `nullValue` is what null becomes. Throws a `NoJsonError`. */
export function toJson(value: Value, nullValue: unknown = null): unknown {
  if (value === null) return nullValue;
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return value;
    case "bigint":
      return toNumber(value);
    default:
  }
  if (value instanceof Uint) return toNumber(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof List) return [...value].map((item) => toJson(item, nullValue));
  if (value instanceof ObjectValue) return membersOf(value.fields, nullValue);
  if (value instanceof MapValue) return membersOf(entriesOf(value), nullValue);
  if (value instanceof Timestamp) return value.text();
  if (value instanceof Duration) return `${Number(value.nanos) / 1e9}s`;
  if (value instanceof Optional) return toJson(value.value ?? null, nullValue);
  throw new NoJsonError(describeUnsupported(value));
}

/** cel-go's and Kubernetes' errors of the conversion to `structpb.Value`. */
function describeUnsupported(value: Value): string {
  if (value instanceof TypeValue) return "type conversion not supported for 'type'";
  const name = typeNameOf(value).replace(/^.*\./, "");
  return `type conversion error from '${name}' to '*structpb.Value'`;
}

function toNumber(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function* entriesOf(map: MapValue): Iterable<readonly [string, Value]> {
  for (const key of map.keys()) {
    if (typeof key !== "string") {
      throw new NoJsonError(describeKey(key));
    }
    yield [key, map.get(key) ?? null];
  }
}

function describeKey(key: Value): string {
  const type = typeNameOf(key);
  return type === "int" || type === "uint"
    ? `unsupported type conversion from '${type}' to string`
    : `type conversion error from ${type} to 'string'`;
}

function membersOf(entries: Iterable<readonly [string, Value]>, nullValue: unknown): Readonly<Record<string, unknown>> {
  const members: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    const member = toJson(value, nullValue);
    // An assignment would set the prototype.
    Object.defineProperty(members, name, { value: member, enumerable: true, writable: true, configurable: true });
  }
  return members;
}
