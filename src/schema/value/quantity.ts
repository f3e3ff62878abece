/**
 * Kubernetes quantities: `500m`, `64Mi`, `1e3`. Exact, in units of 10^-9. There is one canonical text per amount and
 * format, but some other texts are kept.
 */

export interface Quantity {
  /** The amount in nanos: 1 core is 1_000_000_000n. */
  readonly nanos: bigint;
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
  /** The text that was parsed, where Kubernetes does not write another one: `+1`, `1.`, `1e0`. */
  readonly text?: string;
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

/** Sign, digits, decimals, letters of the suffix, the exponent with its sign, and what follows. */
const parts = /^([+-]?)(\d*)(\.\d*)?([eEinumkKMGTP]*)([-+]?\d*)(.*)$/s;

const WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_NUMBER = "unable to parse numeric part of quantity";
const WRONG_SUFFIX = "unable to parse quantity's suffix";

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

/** Why the text is no quantity, in Kubernetes' words. */
export function explainQuantityError(text: unknown): string {
  const found = typeof text === "string" ? read(text.trim()) : WRONG_FORMAT;
  return typeof found === "string" ? found : WRONG_FORMAT;
}

function parse(text: string): Quantity | undefined {
  const found = read(text);
  return typeof found === "string" ? undefined : found;
}

/** The quantity, or why the text is none. As in Kubernetes, a suffix, a sign or a point alone is zero. */
function read(text: string): Quantity | string {
  // Bounds the cost of the arithmetic.
  if (text === "" || text.length > 256) return WRONG_FORMAT;
  const [, sign = "", digits = "", decimals, letters = "", exponent = "", rest = ""] = parts.exec(text) ?? [];
  if (rest !== "") return WRONG_FORMAT;
  const scale = suffixScale(letters, exponent);
  if (scale === undefined) return WRONG_SUFFIX;
  const whole = digits.replace(/^0+/, "") || "0";
  const fraction = decimals?.slice(1) ?? "";
  const isExact = isExactNumber(whole, fraction, scale);
  if (!isExact && digits === "" && fraction === "") return WRONG_NUMBER;
  const magnitude = capBinary(scaleToNanos(BigInt(`${whole}${fraction}`), fraction.length, scale), scale.format);
  const format = scale.format === "BinarySI" && magnitude < unit ? "DecimalSI" : scale.format;
  return {
    nanos: sign === "-" ? -magnitude : magnitude,
    format,
    ...(isExact && isKept(`${whole}${fraction}`, fraction.length, scale) ? { text } : {}),
  };
}

const DIGITS_MAX = 18;
const BINARY_DIGITS_MAX = 14;

/** Whether Kubernetes computes the amount with 64-bit integers. */
function isExactNumber(whole: string, fraction: string, { format, power }: Scale): boolean {
  if (format !== "BinarySI") return whole.length + fraction.length <= DIGITS_MAX && power - fraction.length >= -9;
  if (fraction !== "" || whole.length + Math.trunc(power * 0.3) > BINARY_DIGITS_MAX) return false;
  return BigInt.asIntN(64, BigInt(whole) << BigInt(power)) === BigInt(whole) << BigInt(power);
}

/** Whether Kubernetes keeps the text of the number, taking it for canonical. */
function isKept(number: string, decimals: number, { format, power }: Scale): boolean {
  if (format === "BinarySI") return BigInt(number) % 8n !== 0n;
  return (power - decimals) % 3 === 0 && !number.endsWith("000") && !number.startsWith("0");
}

const BINARY_MAX = (2n ** 63n - 1n) * unit;

function capBinary(magnitude: bigint, format: Quantity["format"]): bigint {
  return format === "BinarySI" && magnitude > BINARY_MAX ? BINARY_MAX : magnitude;
}

interface Scale {
  readonly base: 2n | 10n;
  readonly power: number;
  readonly format: Quantity["format"];
}

function suffixScale(letters: string, exponent: string): Scale | undefined {
  if (exponent !== "") {
    if ((letters !== "e" && letters !== "E") || !/\d$/.test(exponent)) return undefined;
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

/** The canonical text: the largest suffix without a fraction. Beyond the last suffix Kubernetes writes none. */
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
  return `${mantissa}${decimalSuffixes.get(exponent) ?? ""}`;
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

/** The text that Kubernetes writes, rounded up to thousandths with `milli`; undefined when the text is no quantity. */
export function canonicalizeQuantity(text: string, milli = false): string | undefined {
  if (canonicalPattern.test(text)) return text;
  const quantity = parseQuantity(text.trim());
  if (quantity === undefined) return undefined;
  const nanos = milli ? roundAwayFromZero(quantity.nanos, unit / 1000n) : quantity.nanos;
  return nanos === quantity.nanos && quantity.text !== undefined
    ? quantity.text
    : formatQuantity({ nanos, format: quantity.format });
}

/** The amount in whole units, rounded away from zero, with the lowest 64 bits of those that need more. */
export function wholeUnits(nanos: bigint): bigint {
  const units = roundAwayFromZero(nanos, unit) / unit;
  return units < 0n ? -BigInt.asIntN(64, -units) : BigInt.asIntN(64, units);
}

/** To a multiple of `step`, away from zero. */
function roundAwayFromZero(value: bigint, step: bigint): bigint {
  const rest = value % step;
  if (rest === 0n) return value;
  return value - rest + (value < 0n ? -step : step);
}
