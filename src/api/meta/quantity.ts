/** Reckoning with quantities; their text form is the schema engine's (`schema/quantity.ts`). */
import { formatQuantity, parseQuantity, type Quantity } from "../../schema/value/quantity.ts";

export type { Quantity } from "../../schema/value/quantity.ts";
export { formatQuantity, parseQuantity };

const UNIT = 1_000_000_000n;

export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

/** Negative, zero or positive, as `a` is less than, equal to or more than `b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nanos === b.nanos ? 0 : a.nanos < b.nanos ? -1 : 1;
}

/** Whole units, rounded up: bytes of memory, cores. */
export function quantityValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nanos, UNIT));
}

/** Thousandths, rounded up: what CPU amounts are counted in. */
export function quantityMilliValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nanos, UNIT / 1000n));
}

function ceilDivide(value: bigint, divisor: bigint): bigint {
  const truncated = value / divisor;
  return value > 0n && value % divisor !== 0n ? truncated + 1n : truncated;
}

/**
 * Whether an amount has parts of a unit, thousandths at least: bytes must not. As in Go, thousandths are counted in 64
 * bits, so that a number too great for that counts as broken.
 */
export function isFractional(text: string | undefined): boolean {
  const nanos = text === undefined ? 0n : (parseQuantity(text)?.nanos ?? 0n);
  return BigInt.asIntN(64, ceilDivide(nanos, UNIT / 1000n)) % 1000n !== 0n;
}

/** The amount in nanos; text that is no quantity counts as nothing. */
export function quantityNanos(text: string): bigint {
  return parseQuantity(text)?.nanos ?? 0n;
}

/** Negative, zero or positive, as the first amount is less than, equal to or more than the second. */
export function compareQuantityTexts(a: string, b: string): number {
  const difference = quantityNanos(a) - quantityNanos(b);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}
