/** Arithmetic with quantities. The schema package parses and formats them. */
import { formatQuantity, parseQuantity, type Quantity, wholeUnits } from "../../schema/value/quantity.ts";

export type { Quantity } from "../../schema/value/quantity.ts";
export { formatQuantity, parseQuantity, wholeUnits };

const UNIT = 1_000_000_000n;

export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

/** Negative, zero or positive when `a` is less than, equal to or greater than `b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nanos === b.nanos ? 0 : a.nanos < b.nanos ? -1 : 1;
}

/** In whole units, rounded up: bytes, cores. */
export function quantityValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nanos, UNIT));
}

/** In thousandths, rounded up: millicores. */
export function quantityMilliValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nanos, UNIT / 1000n));
}

function ceilDivide(value: bigint, divisor: bigint): bigint {
  const truncated = value / divisor;
  return value > 0n && value % divisor !== 0n ? truncated + 1n : truncated;
}

/**
 * Whether a quantity has a fraction, of thousandths at least; bytes must not. As in Go, thousandths are 64-bit
 * integers, so that a quantity beyond their range counts as fractional.
 */
export function isFractional(text: string | undefined): boolean {
  const nanos = text === undefined ? 0n : (parseQuantity(text)?.nanos ?? 0n);
  return BigInt.asIntN(64, ceilDivide(nanos, UNIT / 1000n)) % 1000n !== 0n;
}

/** The quantity in nanos; 0 for text that is not a quantity. */
export function quantityNanos(text: string): bigint {
  return parseQuantity(text)?.nanos ?? 0n;
}

/** Like `compareQuantities`, for the text of quantities. */
export function compareQuantityTexts(a: string, b: string): number {
  const difference = quantityNanos(a) - quantityNanos(b);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}
