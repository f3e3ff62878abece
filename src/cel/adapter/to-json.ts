/** JSON of CEL values, for patches that expressions create. */
import { Uint } from "../values/compare.ts";
import { ObjectValue } from "../values/object-value.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { formatType } from "../values/types.ts";
import { List, MapValue, Optional, typeOfValue, type Value } from "../values/value.ts";

/** A value without JSON representation. */
export class NoJsonError extends Error {}

/** Integers beyond 2^53 stay `bigint`. Throws a `NoJsonError`. */
export function toJson(value: Value): unknown {
  if (value === null) return null;
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
  if (value instanceof List) return [...value].map(toJson);
  if (value instanceof ObjectValue) return membersOf(value.fields);
  if (value instanceof MapValue) return membersOf(entriesOf(value));
  if (value instanceof Timestamp) return value.text();
  if (value instanceof Duration) return `${Number(value.nanos) / 1e9}s`;
  if (value instanceof Optional) return value.value === undefined ? null : toJson(value.value);
  throw new NoJsonError(`unsupported type ${formatType(typeOfValue(value))}`);
}

function toNumber(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

function* entriesOf(map: MapValue): Iterable<readonly [string, Value]> {
  for (const key of map.keys()) {
    if (typeof key !== "string") {
      throw new NoJsonError(`map key "${String(key)}" is of type ${formatType(typeOfValue(key))}, not string`);
    }
    yield [key, map.get(key) ?? null];
  }
}

function membersOf(entries: Iterable<readonly [string, Value]>): Readonly<Record<string, unknown>> {
  const members: Record<string, unknown> = {};
  for (const [name, value] of entries) {
    const member = toJson(value);
    // An assignment would set the prototype.
    Object.defineProperty(members, name, { value: member, enumerable: true, writable: true, configurable: true });
  }
  return members;
}
