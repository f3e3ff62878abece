/**
 * Kubernetes quantities: `500m`, `64Mi`, `1e3`, `0.5`. Held exactly, as an integer count of nano-units (10^-9), which is
 * the finest a quantity can say; finer fractions round up, as Kubernetes rounds (facts/types.json `encodings.Quantity`).
 */

export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

export interface Quantity {
  readonly nano: bigint;
  readonly format: QuantityFormat;
}

const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:([EPTGMK])i|([numkMGTPE]?)|[eE]([+-]?\d+))$/;
const NANO_DIGITS = 9;
const NANO = 10n ** BigInt(NANO_DIGITS);
const MAX = (2n ** 63n - 1n) * NANO;
/** Longer texts are refused before any arithmetic is done on them. */
const MAX_LENGTH = 128;

const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const binaryExponents: Readonly<Record<string, number>> = { K: 10, M: 20, G: 30, T: 40, P: 50, E: 60 };

/** Undefined when `text` is no quantity. */
export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const match = FORM.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", binary, decimal, exponent] = match;
  if (whole === "" && fraction === "") return undefined;
  const digits = BigInt(whole + fraction);
  const scale = binary === undefined ? decimalScale(decimal, exponent) : 0;
  if (scale === undefined) return undefined;
  const multiplier = binary === undefined ? 1n : 2n ** BigInt(binaryExponents[binary] ?? 0);
  const nano = shiftUp(digits * multiplier, scale - fraction.length + NANO_DIGITS);
  const bounded = nano > MAX ? MAX : nano;
  const format = binary !== undefined ? "BinarySI" : exponent !== undefined ? "DecimalExponent" : "DecimalSI";
  return { nano: sign === "-" ? -bounded : bounded, format };
}

function decimalScale(suffix: string | undefined, exponent: string | undefined): number | undefined {
  if (exponent === undefined) return decimalExponents[suffix ?? ""];
  const value = Number(exponent);
  return Math.abs(value) > MAX_LENGTH ? undefined : value;
}

/** `value` × 10^`power`, rounded away from zero. */
function shiftUp(value: bigint, power: number): bigint {
  if (power >= 0) return value * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return value % divisor === 0n ? value / divisor : value / divisor + 1n;
}

/** The canonical text: no fraction, the largest suffix that keeps it whole, the format it was written in. */
export function formatQuantity(quantity: Quantity): string {
  const { nano } = quantity;
  if (nano === 0n) return "0";
  const negative = nano < 0n ? "-" : "";
  const magnitude = nano < 0n ? -nano : nano;
  // Binary suffixes cannot say fractions, and Kubernetes writes small binary amounts in decimal.
  if (quantity.format === "BinarySI" && magnitude % NANO === 0n && magnitude >= 1024n * NANO) {
    return negative + withBinarySuffix(magnitude / NANO);
  }
  return negative + withDecimalSuffix(magnitude, quantity.format === "DecimalExponent");
}

function withBinarySuffix(value: bigint): string {
  let rest = value;
  let suffix = "";
  for (const next of ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]) {
    if (rest % 1024n !== 0n) break;
    rest /= 1024n;
    suffix = next;
  }
  return `${rest}${suffix}`;
}

function withDecimalSuffix(nano: bigint, exponentForm: boolean): string {
  let rest = nano;
  let power = -NANO_DIGITS;
  while (rest % 1000n === 0n && power < 18) {
    rest /= 1000n;
    power += 3;
  }
  if (power === 0) return `${rest}`;
  if (exponentForm) return `${rest}e${power}`;
  const suffix = Object.keys(decimalExponents).find((key) => decimalExponents[key] === power) ?? "";
  return `${rest}${suffix}`;
}

/** The canonical form of a quantity's text; text that is no quantity comes back as it is. */
export function canonicalQuantity(text: string): string {
  const quantity = parseQuantity(text);
  return quantity === undefined ? text : formatQuantity(quantity);
}

export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nano: a.nano + b.nano, format: a.nano === 0n ? b.format : a.format };
}

/** Negative, zero or positive, as `a` is less than, equal to or more than `b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nano === b.nano ? 0 : a.nano < b.nano ? -1 : 1;
}

/** Whole units, rounded up: bytes of memory, cores. */
export function quantityValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nano, NANO));
}

/** Thousandths, rounded up: what CPU amounts are counted in. */
export function quantityMilliValue(quantity: Quantity): number {
  return Number(ceilDivide(quantity.nano, NANO / 1000n));
}

function ceilDivide(value: bigint, divisor: bigint): bigint {
  const floor = value / divisor;
  return value > 0n && value % divisor !== 0n ? floor + 1n : floor;
}
