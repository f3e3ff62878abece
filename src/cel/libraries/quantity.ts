/** `quantity('1.5Gi')`: quantities with comparison and arithmetic. */
import { decimalPowers, parseQuantity } from "../../schema/value/quantity.ts";
import { functionOf, type Library, method, overload } from "../functions.ts";
import { compareNumbers } from "../values/compare.ts";
import { boolType, doubleType, intType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import { INT_MAX, INT_MIN } from "./arithmetic.ts";

const quantityType = opaqueType("kubernetes.Quantity");
const UNIT = 1_000_000_000n;

/** The power of ten of the unit in which a quantity is a 64-bit integer; undefined where it is a decimal. */
type Scale = number | undefined;

class QuantityValue extends Opaque {
  readonly type: Type = quantityType;
  readonly nanos: bigint;
  readonly #scale: Scale;

  constructor(nanos: bigint, scale: Scale) {
    super();
    this.nanos = nanos;
    this.#scale = scale;
  }

  override equals(other: Value): boolean {
    return other instanceof QuantityValue && other.nanos === this.nanos;
  }

  /** Kubernetes converts no quantity with a fraction in its text, nor any that is a decimal. */
  isInteger(): boolean {
    return this.#scale !== undefined && this.#scale >= 0 && isInt64(this.nanos / UNIT);
  }

  add(other: QuantityValue): QuantityValue {
    const nanos = this.nanos + other.nanos;
    return new QuantityValue(nanos, this.#scaleOfSum(other, nanos));
  }

  subtract(other: QuantityValue): QuantityValue {
    return this.add(new QuantityValue(-other.nanos, other.#scale));
  }

  #scaleOfSum(other: QuantityValue, nanos: bigint): Scale {
    if (this.#scale === undefined || other.#scale === undefined) return undefined;
    if (other.nanos === 0n) return this.#scale;
    if (this.nanos === 0n) return other.#scale;
    const scale = Math.min(this.#scale, other.#scale);
    const unit = 10n ** BigInt(9 + scale);
    return [this.nanos, other.nanos, nanos].every((amount) => isInt64(amount / unit)) ? scale : undefined;
  }
}

function isInt64(value: bigint): boolean {
  return value <= INT_MAX && value >= INT_MIN;
}

/** Decimal digits that are sure to fit into 64 bits. */
const DIGITS_MAX = 18;

/** As Kubernetes' parser: it uses decimals for what may not fit into 64 bits. */
function scaleOf(text: string): Scale {
  const [, whole = "", fraction = "", suffix = ""] = /^[+-]?0*(\d*)\.?(\d*)(.*)$/.exec(text) ?? [];
  const digits = Math.max(whole.length, 1) + fraction.length;
  const shift = binaryShifts.get(suffix);
  if (shift !== undefined) {
    const precision = 15 - digits - Math.trunc((shift * 3) / 10) - 1;
    return fraction === "" && precision >= 0 ? 0 : undefined;
  }
  const exponent = decimalPowers[suffix] ?? Number(suffix.slice(1));
  const scale = exponent - fraction.length;
  return digits <= DIGITS_MAX && scale >= -9 ? scale : undefined;
}

const binaryShifts = new Map(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((suffix, index) => [suffix, 10 * (index + 1)]));

export function toQuantity(text: string): QuantityValue {
  const quantity = parseQuantity(text);
  return quantity === undefined ? fail(describeParseError(text)) : new QuantityValue(quantity.nanos, scaleOf(text));
}

function describeParseError(text: string): string {
  if (text === "") return "unable to parse quantity's suffix";
  const formatHint = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  return /^[+-]?[0-9.]+(?:[eEinumkKMGTP]+[-+]?[0-9]*|[-+][0-9]*)?$/.test(text)
    ? "unable to parse quantity's suffix"
    : formatHint;
}

const two = [quantityType, quantityType];
const withInt = [quantityType, intType];

function compareQuantities(a: QuantityValue, b: QuantityValue): number {
  return compareNumbers(a.nanos, b.nanos);
}

export const quantity: Library = {
  functions: [
    functionOf("quantity", overload("string_to_quantity", [stringType], quantityType, toQuantity)),
    functionOf(
      "isQuantity",
      overload("is_quantity_string", [stringType], boolType, (text: string) => parseQuantity(text) !== undefined),
    ),
    // A global function: `sign(q)`.
    functionOf(
      "sign",
      overload("quantity_sign", [quantityType], intType, (a: QuantityValue) => BigInt(compareNumbers(a.nanos, 0n))),
    ),
    functionOf(
      "isGreaterThan",
      method(
        "quantity_is_greater_than",
        two,
        boolType,
        (a: QuantityValue, b: QuantityValue) => compareQuantities(a, b) > 0,
      ),
    ),
    functionOf(
      "isLessThan",
      method(
        "quantity_is_less_than",
        two,
        boolType,
        (a: QuantityValue, b: QuantityValue) => compareQuantities(a, b) < 0,
      ),
    ),
    functionOf(
      "compareTo",
      method("quantity_compare_to", two, intType, (a: QuantityValue, b: QuantityValue) =>
        BigInt(compareQuantities(a, b)),
      ),
    ),
    functionOf(
      "asApproximateFloat",
      method("quantity_get_float", [quantityType], doubleType, (a: QuantityValue) => Number(a.nanos) / Number(UNIT)),
    ),
    functionOf(
      "asInteger",
      method("quantity_get_int", [quantityType], intType, (a: QuantityValue) => {
        return a.isInteger() ? a.nanos / UNIT : fail("cannot convert value to integer");
      }),
    ),
    functionOf(
      "isInteger",
      method("quantity_is_integer", [quantityType], boolType, (a: QuantityValue) => a.isInteger()),
    ),
    functionOf(
      "add",
      method("quantity_add", two, quantityType, (a: QuantityValue, b: QuantityValue) => {
        return a.add(b);
      }),
      method("quantity_add_int", withInt, quantityType, (a: QuantityValue, b: bigint) => {
        return a.add(new QuantityValue(b * UNIT, 0));
      }),
    ),
    functionOf(
      "sub",
      method("quantity_sub", two, quantityType, (a: QuantityValue, b: QuantityValue) => {
        return a.subtract(b);
      }),
      method("quantity_sub_int", withInt, quantityType, (a: QuantityValue, b: bigint) => {
        return a.subtract(new QuantityValue(b * UNIT, 0));
      }),
    ),
  ],
};
