import { TooManyValuesError } from "./limits.ts";

/** Throws a `TooManyValuesError` when a JSON-like value contains more than `max` values, itself included. */
export function checkValues(value: unknown, max: number): void {
  if (countValues(value, max) > max) throw new TooManyValuesError(max);
}

/** Counts the values that a JSON-like value contains, itself included, to `max` and a little more. */
export function countValues(value: unknown, max: number): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && count <= max; index++) {
      const item: unknown = value[index];
      count += isScalar(item) ? 1 : countValues(item, max - count);
    }
    return count;
  }
  if (ArrayBuffer.isView(value)) return 1;
  for (const name in value) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    count += isScalar(member) ? 1 : countValues(member, max - count);
    if (count > max) break;
  }
  return count;
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}
