/** `quantity('1.5Gi')`: quantities with comparison and arithmetic. */
import { parseQuantity } from "../../schema/value/quantity.ts";
import { functionOf, type Library, method, overload } from "../functions.ts";
import { compareNumbers } from "../values/compare.ts";
import { boolType, doubleType, intType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import { INT_MAX, INT_MIN } from "./arithmetic.ts";

const quantityType = opaqueType("kubernetes.Quantity");
const UNIT = 1_000_000_000n;

class QuantityValue extends Opaque {
  readonly type: Type = quantityType;
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    this.nanos = nanos;
  }

  override equals(other: Value): boolean {
    return other instanceof QuantityValue && other.nanos === this.nanos;
  }

  /** The limits of the range are not integers, since values beyond are capped to them. */
  isInteger(): boolean {
    const whole = this.nanos / UNIT;
    return this.nanos % UNIT === 0n && whole < INT_MAX && whole > INT_MIN;
  }
}

export function toQuantity(text: string): QuantityValue {
  const quantity = parseQuantity(text);
  return quantity === undefined ? fail(describeParseError(text)) : new QuantityValue(quantity.nanos);
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
        return new QuantityValue(a.nanos + b.nanos);
      }),
      method("quantity_add_int", withInt, quantityType, (a: QuantityValue, b: bigint) => {
        return new QuantityValue(a.nanos + b * UNIT);
      }),
    ),
    functionOf(
      "sub",
      method("quantity_sub", two, quantityType, (a: QuantityValue, b: QuantityValue) => {
        return new QuantityValue(a.nanos - b.nanos);
      }),
      method("quantity_sub_int", withInt, quantityType, (a: QuantityValue, b: bigint) => {
        return new QuantityValue(a.nanos - b * UNIT);
      }),
    ),
  ],
};
