/** `"%s has %d".format([a, b])`, as cel-go formats it in its default locale, en-US. */

import { Uint } from "../values/compare.ts";
import { Duration, Timestamp } from "../values/time-value.ts";
import { fail, type List, List as ListClass, MapValue, TypeValue, type Value } from "../values/value.ts";
import { formatDouble } from "./conversion.ts";

const clause = /%(?:%|(?:\.(\d*))?(.)|$)/gsu;
const PRECISION_MAX = 1000;
/** Exceeds the length of any text in a request. */
const LENGTH_MAX = 2 ** 24;

export function formatText(pattern: string, args: List): string {
  let position = 0;
  let length = pattern.length;
  const text = pattern.replaceAll(clause, (whole, precision: string | undefined, letter: string | undefined) => {
    if (whole === "%%") return "%";
    if (letter === undefined) return fail("unexpected end of string");
    if (position >= args.size) return fail(`index ${position} out of range`);
    const value = args.at(position++);
    if (precision !== undefined && letter !== "f" && letter !== "e") {
      return fail(`unrecognized formatting clause "${letter}"`);
    }
    const text = formatClause(
      letter,
      value,
      precision === undefined || precision === "" ? 6 : parsePrecision(precision),
    );
    length += text.length;
    return length > LENGTH_MAX ? fail("text too long") : text;
  });
  return position < args.size ? fail(`too many arguments supplied to string.format (expected ${position})`) : text;
}

function parsePrecision(precision: string): number {
  const digits = Number(precision);
  return digits > PRECISION_MAX ? fail(`precision too large: ${precision}`) : digits;
}

function formatClause(letter: string, value: Value, precision: number): string {
  switch (letter) {
    case "s":
      return formatString(value);
    case "d":
      return (
        formatInteger(value) ??
        formatNonFinite(value) ??
        fail(mismatch("decimal clause can only be used on integers", value))
      );
    case "f":
      return formatNumber("fixed-point", value, (size) => formatFixed(size, precision));
    case "e":
      return formatNumber("scientific", value, (size) => formatScientific(size, precision));
    case "b":
      return typeof value === "boolean" ? (value ? "1" : "0") : formatRadix("binary", value, 2);
    case "o":
      return formatRadix("octal", value, 8);
    case "x":
      return formatHex(value);
    case "X":
      return formatHex(value).toUpperCase();
    default:
      return fail(`unrecognized formatting clause "${letter}"`);
  }
}

function mismatch(what: string, value: Value): string {
  return `error during formatting: ${what}, was given ${typeName(value)}`;
}

function typeName(value: Value): string {
  if (value === null) return "null_type";
  if (value instanceof ListClass) return "list";
  return value instanceof MapValue ? "map" : typeof value;
}

function formatInteger(value: Value): string | undefined {
  if (typeof value === "bigint") return String(value);
  return value instanceof Uint ? String(value.value) : undefined;
}

/** Only NaN and infinities: other doubles are not integers. */
function formatNonFinite(value: Value): string | undefined {
  return typeof value === "number" && !Number.isFinite(value) ? nonFiniteName(value) : undefined;
}

function nonFiniteName(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

/** NaN and infinities can also be strings, as in JSON. */
function formatNumber(clause: string, value: Value, print: (size: number) => string): string {
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") return infinitySymbol(Number(value));
  const size = typeof value === "bigint" ? Number(value) : value instanceof Uint ? Number(value.value) : value;
  if (typeof size !== "number") return fail(mismatch(`${clause} clause can only be used on doubles`, value));
  return Number.isFinite(size) ? print(size) : infinitySymbol(size);
}

function infinitySymbol(size: number): string {
  if (Number.isNaN(size)) return "NaN";
  return size > 0 ? "∞" : "-∞";
}

function formatFixed(size: number, precision: number): string {
  // `toFixed` supports 100 digits, and switches to exponents at 10^21.
  if (Math.abs(size) >= 1e21)
    return precision === 0 ? String(BigInt(size)) : `${BigInt(size)}.${"0".repeat(precision)}`;
  return precision <= 100 ? size.toFixed(precision) : size.toFixed(100) + "0".repeat(precision - 100);
}

/** `1.052033 × 10⁰³`, with narrow no-break spaces. */
function formatScientific(size: number, precision: number): string {
  const [mantissa = "", exponent = "+0"] = size.toExponential(Math.min(precision, 100)).split("e");
  const digits = exponent.slice(1).padStart(2, "0");
  const raised = [...digits].map((digit) => superscripts[Number(digit)]).join("");
  return `${mantissa}\u202f×\u202f10${exponent.startsWith("-") ? "⁻" : ""}${raised}`;
}

const superscripts = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];

function formatRadix(clause: string, value: Value, base: number): string {
  if (typeof value === "bigint") return value.toString(base);
  if (value instanceof Uint) return value.value.toString(base);
  return fail(mismatch(`${clause} clause can only be used on integers`, value));
}

function formatHex(value: Value): string {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return formatRadix("hex", value, 16);
}

function formatString(value: Value): string {
  if (value instanceof ListClass || value instanceof MapValue)
    return formatCollection(value, { remaining: LENGTH_MAX });
  return formatScalar(value);
}

function formatScalar(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? formatDouble(value) : nonFiniteName(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (value instanceof Timestamp || value instanceof Duration) return value.text();
  if (value instanceof TypeValue) return value.name;
  return fail(mismatch("string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists", value));
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
  const entries: string[] = [];
  for (const key of value.keys()) entries.push(`${formatItem(key, budget)}:${formatItem(value.get(key)!, budget)}`);
  return `{${entries.sort().join(", ")}}`;
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
  if (typeof value === "number") return Number.isFinite(value) ? value.toFixed(6) : `"${nonFiniteName(value)}"`;
  if (value instanceof Uint8Array) return `b${JSON.stringify(Buffer.from(value).toString("utf8"))}`;
  if (value instanceof Timestamp) return `timestamp("${value.text()}")`;
  if (value instanceof Duration) return `duration("${value.text()}")`;
  return formatScalar(value);
}
