/**
 * 64-bit integers as numbers: those of Kubernetes' kinds that a double represents, and the largest one, which stands
 * for "no limit" and which is 2^63 in memory.
 */

const LARGEST = 2n ** 63n - 1n;

/** Why an integer is refused. */
export const INEXACT_INTEGER = "integers beyond 2^53 are supported only where a double represents them";

/** Undefined for an integer that no double represents. */
export function int64ToNumber(value: bigint): number | undefined {
  const number = Number(value);
  return value === LARGEST || BigInt(number) === value ? number : undefined;
}

export function numberToInt64(value: number): bigint {
  const integer = BigInt(value);
  return integer > LARGEST ? LARGEST : integer;
}

/** All digits of an integer; `String` rounds those of numbers beyond 2^53. */
export function formatInteger(value: number | bigint): string {
  return typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : String(numberToInt64(value));
}
