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

/** A decimal integer as strconv.ParseInt of Go reads it, with an optional sign; undefined where it does not fit. */
export function parseSigned(text: string, bits: 32 | 64): bigint | undefined {
  // The length keeps the conversion short: no integer of 64 bits that is not padded has more digits.
  if (text.length > 1_000 || !/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return BigInt.asIntN(bits, value) === value ? value : undefined;
}

/** All digits of an integer; `String` rounds those of numbers beyond 2^53. */
export function formatInteger(value: number | bigint): string {
  return typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : String(numberToInt64(value));
}
