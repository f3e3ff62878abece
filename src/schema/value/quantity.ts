/**
 * Kubernetes quantities: `500m`, `64Mi`, `1e3`. Exact, in units of 10^-9; one canonical text per amount and format, so
 * that equal quantities have equal text.
 */

export interface Quantity {
  /** The amount in nanos: 1 core is 1_000_000_000n. */
  readonly nanos: bigint;
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
}

const unit = 1_000_000_000n;
/** The power of ten of each decimal suffix. */
export const decimalPowers: Readonly<Record<string, number>> = {
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
const decimalSuffixes = new Map(Object.entries(decimalPowers).map(([suffix, power]) => [power, suffix]));
const binaryPowers: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const pattern = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*)([-+]?\d*)$/;

export const quantityHint =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** The objects of a cluster have few different quantities, each of which is parsed several times in a write. */
const parsed = new Map<string, Quantity | undefined>();
const PARSED_MAX = 1024;
const PARSED_TEXT_MAX = 24;

/** Undefined when the text is not a quantity. Fractions of a nano round away from zero. */
export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > PARSED_TEXT_MAX) return parse(text);
  const known = parsed.get(text);
  if (known !== undefined || parsed.has(text)) return known;
  const quantity = parse(text);
  if (parsed.size >= PARSED_MAX) parsed.clear();
  parsed.set(text, quantity);
  return quantity;
}

function parse(text: string): Quantity | undefined {
  // Bounds the cost of the arithmetic.
  if (text.length > 256) return undefined;
  const parts = pattern.exec(text);
  if (parts === null) return undefined;
  const [, sign, whole = "", fraction = "", letters = "", exponent = ""] = parts;
  if (whole === "" && fraction === "") return undefined;
  const scale = suffixScale(letters, exponent);
  if (scale === undefined) return undefined;
  const magnitude = scaleToNanos(BigInt(`${whole}${fraction}` || "0"), fraction.length, scale);
  const format = scale.format === "BinarySI" && magnitude < unit ? "DecimalSI" : scale.format;
  return { nanos: sign === "-" ? -magnitude : magnitude, format };
}

interface Scale {
  readonly base: 2n | 10n;
  readonly power: number;
  readonly format: Quantity["format"];
}

function suffixScale(letters: string, exponent: string): Scale | undefined {
  if (exponent !== "") {
    if ((letters !== "e" && letters !== "E") || !/^[-+]?\d+$/.test(exponent)) return undefined;
    const power = Number(exponent);
    return Math.abs(power) > 1000 ? undefined : { base: 10n, power, format: "DecimalExponent" };
  }
  if (Object.hasOwn(binaryPowers, letters)) {
    return { base: 2n, power: binaryPowers[letters] ?? 0, format: "BinarySI" };
  }
  if (Object.hasOwn(decimalPowers, letters)) {
    return { base: 10n, power: decimalPowers[letters] ?? 0, format: "DecimalSI" };
  }
  return undefined;
}

/** digits × base^power / 10^decimals, in nanos, rounded away from zero. */
function scaleToNanos(digits: bigint, decimals: number, scale: Scale): bigint {
  let numerator = digits * unit;
  let denominator = 10n ** BigInt(decimals);
  if (scale.power >= 0) numerator *= scale.base ** BigInt(scale.power);
  else denominator *= scale.base ** BigInt(-scale.power);
  return (numerator + denominator - 1n) / denominator;
}

/** The canonical text: the largest suffix without a fraction. */
export function formatQuantity(quantity: Quantity): string {
  const { nanos } = quantity;
  if (nanos === 0n) return "0";
  const small = nanos > -1024n * unit && nanos < 1024n * unit;
  if (quantity.format === "BinarySI" && !small && nanos % unit === 0n) return formatBinary(nanos / unit);
  let mantissa = nanos;
  let exponent = -9;
  while (mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (quantity.format === "DecimalExponent") return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${decimalSuffixes.get(exponent) ?? `e${exponent}`}`;
}

function formatBinary(amount: bigint): string {
  let mantissa = amount;
  let steps = 0;
  while (mantissa % 1024n === 0n && steps < binarySuffixes.length - 1) {
    mantissa /= 1024n;
    steps++;
  }
  return `${mantissa}${binarySuffixes[steps]}`;
}

// Fast path: most quantities are canonical already, small integers with a common suffix.
const canonicalPattern = /^(?:0|[1-9]\d{0,2}[mkMG]?|[1-9]\d{0,2}(?:Mi|Gi))$/;

/** The canonical text, rounded up to thousandths with `milli`; undefined when the text is not a quantity. */
export function canonicalizeQuantity(text: string, milli = false): string | undefined {
  if (canonicalPattern.test(text)) return text;
  const quantity = parseQuantity(text.trim());
  if (quantity === undefined) return undefined;
  return formatQuantity(milli ? { ...quantity, nanos: roundAwayFromZero(quantity.nanos, unit / 1000n) } : quantity);
}

/** To a multiple of `step`, away from zero. */
function roundAwayFromZero(value: bigint, step: bigint): bigint {
  const rest = value % step;
  if (rest === 0n) return value;
  return value - rest + (value < 0n ? -step : step);
}
