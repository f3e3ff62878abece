/** `"%s has %d".format([a, b])`, as cel-go formats it in its default locale, en-US. */

import { Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { typeNameOf } from "../values/type-name.ts";
import { fail, type List, List as ListClass, MapValue, TypeValue, type Value } from "../values/value.ts";
import { formatDouble } from "./conversion.ts";
import { type Clause, type ClauseLetter, describeMismatch, replaceClauses } from "./format-clauses.ts";

const PRECISION = 6;
/** The digits that `toFixed` and `toExponential` support. */
const DIGITS_MAX = 100;
/** Exceeds the length of any text in a request. */
const LENGTH_MAX = 2 ** 24;

export function formatText(format: string, args: List): string {
  let length = format.length;
  return replaceClauses(format, { size: args.size, late: false }, (clause, index) => {
    const text = formatClause(clause, args.at(index));
    length += text.length;
    return length > LENGTH_MAX ? fail("text too long") : text;
  }).text;
}

function formatClause({ letter, precision }: Clause, value: Value): string {
  switch (letter) {
    case "s":
      return formatString(value);
    case "d":
      return formatInteger(value) ?? failMismatch(letter, value);
    case "f":
      return formatFixed(toDouble(letter, value), precision ?? PRECISION);
    case "e":
      // cel-go uses the precision as the minimum width.
      return formatScientific(toDouble(letter, value)).padStart(precision ?? PRECISION);
    case "b":
      return typeof value === "boolean" ? (value ? "1" : "0") : formatRadix(letter, value, 2);
    case "o":
      return formatRadix(letter, value, 8);
    case "x":
      return formatHex(letter, value);
    case "X":
      return formatHex(letter, value).toUpperCase();
    default:
      return letter satisfies never;
  }
}

function failMismatch(letter: ClauseLetter, value: Value): never {
  return fail(describeMismatch(letter, typeNameOf(value)));
}

function formatInteger(value: Value): string | undefined {
  if (typeof value === "bigint") return String(value);
  return value instanceof Uint ? String(value.value) : undefined;
}

/** NaN and infinities can also be strings, as in JSON. */
function toDouble(letter: ClauseLetter, value: Value): number {
  if (typeof value === "number") return value;
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") return Number(value);
  return failMismatch(letter, value);
}

function formatNonFinite(size: number): string {
  if (Number.isNaN(size)) return "NaN";
  return size > 0 ? "∞" : "-∞";
}

/** `1,234.500`. */
function formatFixed(size: number, precision: number): string {
  if (!Number.isFinite(size)) return formatNonFinite(size);
  const text = fixedDigits(Math.abs(size), precision);
  const [whole = "", fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
  const sign = size < 0 || Object.is(size, -0) ? "-" : "";
  return `${sign}${grouped}${fraction === undefined ? "" : `.${fraction}`}`;
}

function fixedDigits(size: number, precision: number): string {
  // `toFixed` switches to exponents at 10^21.
  if (size >= 1e21) return precision === 0 ? String(BigInt(size)) : `${BigInt(size)}.${"0".repeat(precision)}`;
  if (precision > DIGITS_MAX) return size.toFixed(DIGITS_MAX) + "0".repeat(precision - DIGITS_MAX);
  return roundTiesToEven(size.toFixed(DIGITS_MAX), precision) ?? size.toFixed(precision);
}

/** `1.052033×10⁰³`. */
function formatScientific(size: number): string {
  if (!Number.isFinite(size)) return formatNonFinite(size);
  const [exact = ""] = size.toExponential(DIGITS_MAX).split("e");
  const [rounded = "", exponent = "+0"] = size.toExponential(PRECISION).split("e");
  const mantissa = roundTiesToEven(exact, PRECISION) ?? rounded;
  const digits = exponent.slice(1).padStart(2, "0");
  const raised = [...digits].map((digit) => superscripts[Number(digit)]).join("");
  return `${mantissa}×10${exponent.startsWith("-") ? "⁻" : ""}${raised}`;
}

const superscripts = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];

/** The digits that `toFixed` would round up although they are as near and even; undefined in all other cases. */
function roundTiesToEven(exact: string, precision: number): string | undefined {
  const point = exact.indexOf(".");
  const kept = exact.slice(0, precision === 0 ? point : point + 1 + precision);
  const rest = exact.slice(point + 1 + precision);
  return /^50*$/.test(rest) && /[02468]$/.test(kept) ? kept : undefined;
}

function formatRadix(letter: ClauseLetter, value: Value, base: number): string {
  if (typeof value === "bigint") return value.toString(base);
  return value instanceof Uint ? value.value.toString(base) : failMismatch(letter, value);
}

function formatHex(letter: ClauseLetter, value: Value): string {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return formatRadix(letter, value, 16);
}

function formatString(value: Value): string {
  if (value instanceof ListClass || value instanceof MapValue)
    return formatCollection(value, { remaining: LENGTH_MAX });
  return formatScalar(value) ?? failMismatch("s", value);
}

function formatScalar(value: Value): string | undefined {
  if (value === null) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return formatDouble(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (value instanceof Timestamp || value instanceof Duration) return value.text();
  return value instanceof TypeValue ? value.name : undefined;
}

/** The remaining length, which bounds values that contain shared parts many times. */
interface LengthBudget {
  remaining: number;
}

function formatCollection(value: List | MapValue, budget: LengthBudget): string {
  if (value instanceof ListClass) {
    const items: string[] = [];
    for (const item of value) items.push(formatItem(item, budget));
    return `[${items.join(", ")}]`;
  }
  const entries: (readonly [string, string])[] = [];
  for (const key of value.keys()) {
    if (typeof key === "number") fail("error during formatting: no formatting function for map key of type double");
    entries.push([formatItem(key, budget), formatItem(value.get(key)!, budget)]);
  }
  return `{${entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${key}:${item}`)
    .join(", ")}}`;
}

function formatItem(value: Value, budget: LengthBudget): string {
  const text =
    value instanceof ListClass || value instanceof MapValue ? formatCollection(value, budget) : formatQuoted(value);
  budget.remaining -= text.length;
  return budget.remaining < 0 ? fail("text too long") : text;
}

/** Items of lists and maps are formatted as literals. */
function formatQuoted(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return Number.isFinite(value) ? value.toFixed(PRECISION) : `"${formatDouble(value)}"`;
  if (value instanceof Uint8Array) return `b${JSON.stringify(Buffer.from(value).toString("utf8"))}`;
  if (value instanceof Timestamp) return `timestamp("${value.text()}")`;
  if (value instanceof Duration) return `duration("${value.text()}")`;
  return formatScalar(value) ?? fail(`error during formatting: no formatting function for ${typeNameOf(value)}`);
}
