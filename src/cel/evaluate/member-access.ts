/** Access to fields and elements: `a.b`, `a[i]`, `has(a.b)`, `a.?b`, `a[?i]`. */
import { Uint } from "../values/compare.ts";
import { formatType } from "../values/types.ts";
import { fail, List, MapValue, Optional, typeOfValue, type Value } from "../values/value.ts";

export function memberOf(value: Value, name: string): Value {
  if (value instanceof MapValue) {
    const member = value.member(name);
    return member === undefined ? fail(`no such key: ${name}`) : member;
  }
  if (value instanceof Optional) return optionalMember(value, name);
  return value instanceof List ? unsupportedIndexType("string") : fail(`no such key: ${name}`);
}

/** False for values without members, as in Kubernetes. */
export function hasMember(value: Value, name: string): boolean {
  if (value instanceof List) return unsupportedIndexType("string");
  if (value instanceof MapValue) return value.hasMember(name);
  return value instanceof Optional && value.value !== undefined && hasMember(value.value, name);
}

/** `a.?b`: none when the member is absent. */
export function optionalMember(value: Value, name: string): Optional {
  if (value instanceof Optional) return value.value === undefined ? value : optionalMember(value.value, name);
  if (value instanceof List) return unsupportedIndexType("string");
  const member = value instanceof MapValue ? value.member(name) : undefined;
  return member === undefined ? Optional.none : Optional.of(member);
}

export function elementOf(value: Value, index: Value): Value {
  if (value instanceof List) {
    const position = listIndex(index);
    if (position < 0 || position >= value.size) return fail(`index out of bounds: ${formatIndex(index)}`);
    return value.at(position);
  }
  if (value instanceof MapValue) {
    const member = value.get(index);
    return member === undefined ? fail(`no such key: ${formatIndex(index)}`) : member;
  }
  if (value instanceof Optional) return optionalElement(value, index);
  return fail(`no such key: ${formatIndex(index)}`);
}

/** `a[?i]`. */
export function optionalElement(value: Value, index: Value): Optional {
  if (value instanceof Optional) return value.value === undefined ? value : optionalElement(value.value, index);
  if (value instanceof List) {
    const position = listIndex(index);
    return position >= 0 && position < value.size ? Optional.of(value.at(position)) : Optional.none;
  }
  const member = value instanceof MapValue ? value.get(index) : undefined;
  return member === undefined ? Optional.none : Optional.of(member);
}

/** Accepts integers of any numeric type. */
function listIndex(index: Value): number {
  const number = index instanceof Uint ? Number(index.value) : typeof index === "bigint" ? Number(index) : index;
  if (typeof number !== "number") return unsupportedIndexType(formatType(typeOfValue(index)));
  if (!Number.isInteger(number) || (typeof index !== "bigint" && Math.abs(number) >= 2 ** 63)) {
    return fail(`unsupported index value ${formatIndex(index)} in list`);
  }
  return number;
}

function formatIndex(index: Value): string {
  return index instanceof Uint ? String(index.value) : String(index);
}

function unsupportedIndexType(type: string): never {
  return fail(`unsupported index type '${type}' in list`);
}
