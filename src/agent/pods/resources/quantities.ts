/** Parses quantities to the plain numbers that cgroups and comparisons need. Throws for text that is no quantity. */
import { parseQuantity, type Quantity, quantityMilliValue, quantityValue } from "../../../api/meta/quantity.ts";

/** The exact value in billionths; 0 for an absent quantity. */
export function parseNanos(quantity: string | undefined): bigint {
  return parse(quantity ?? "0").nanos;
}

/** Whole units (bytes, cores), rounded up. */
export function parseUnits(quantity: string | undefined): number {
  return quantityValue(parse(quantity ?? "0"));
}

/** Thousandths of a CPU, rounded up. */
export function parseMillis(quantity: string | undefined): number {
  return quantityMilliValue(parse(quantity ?? "0"));
}

/** `nanos` in units of `divisor`, rounded up. */
export function divideRoundingUp(nanos: bigint, divisor: bigint): number {
  return Number((nanos + divisor - 1n) / divisor);
}

function parse(text: string): Quantity {
  const quantity = parseQuantity(text);
  if (quantity === undefined) throw new Error(`Cannot parse quantity "${text}"`);
  return quantity;
}
