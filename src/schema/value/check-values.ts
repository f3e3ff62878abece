import { rootMembersMax, storedValuesMax, TooManyValuesError } from "./limits.ts";

/**
 * Throws a `TooManyValuesError` when an object to store contains more than `storedValuesMax` values. An object that
 * already does may be changed when it does not grow, so that its finalizers can be removed.
 */
export function checkStoredValues(value: unknown, previous: unknown): void {
  checkRootMembers(value, previous);
  checkValues(value, previous, storedValuesMax);
}

/** Throws a `TooManyValuesError` for more than `max` values, when `previous` does not have as many. */
export function checkValues(value: unknown, previous: unknown, max: number): void {
  if (countValues(value, max) <= max) return;
  if (countValues(value, Number.POSITIVE_INFINITY) <= countValues(previous, Number.POSITIVE_INFINITY)) return;
  throw new TooManyValuesError(max);
}

/** Throws a `TooManyValuesError` for more than `rootMembersMax` members, when `previous` does not have as many. */
export function checkRootMembers(value: unknown, previous: unknown = {}): void {
  const count = Object.keys(value ?? {}).length;
  if (count <= rootMembersMax || count <= Object.keys(previous ?? {}).length) return;
  throw new TooManyValuesError(rootMembersMax, "members at the root");
}

/** Values of which every step of a write takes less than a few milliseconds, in all. */
const FEW_VALUES_MAX = 1000;

/** Whether steps with one of these values should yield to other requests. */
export function areLong(...values: readonly unknown[]): boolean {
  return values.some((value) => countValues(value, FEW_VALUES_MAX) > FEW_VALUES_MAX);
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
