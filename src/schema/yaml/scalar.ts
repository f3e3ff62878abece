/**
 * Resolves plain YAML scalars as Kubernetes does: YAML 1.1 booleans and numbers (`yes`, `0644`), no dates, no base-60
 * numbers.
 */
import { numberOf } from "../json/exact-numbers.ts";

const constants: ReadonlyMap<string, boolean | number | null> = new Map<string, boolean | number | null>([
  ...["", "~", "null", "Null", "NULL"].map((word) => [word, null] as const),
  ...["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"].map((word) => [word, true] as const),
  ...[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"].map((word) => [word, Number.POSITIVE_INFINITY] as const),
  ...["-.inf", "-.Inf", "-.INF"].map((word) => [word, Number.NEGATIVE_INFINITY] as const),
  ...[".nan", ".NaN", ".NAN"].map((word) => [word, Number.NaN] as const),
  ...["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"].map((word) => [word, false] as const),
]);

const decimal = /^[-+]?(?:0|[1-9][\d_]*)$/;
const based = /^([-+]?)0([xXbBoO]?)([\da-fA-F_]+)$/;
const real = /^[-+]?(?:\.[\d_]+|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?\d+)?$/;

/** Resolves an untagged plain scalar. Overflowing numbers stay strings. */
export function resolvePlain(text: string): string | number | bigint | boolean | null {
  const constant = constants.get(text);
  if (constant !== undefined) return constant;
  const first = text.charCodeAt(0);
  // A number starts with a digit, a sign or a point.
  if (!((first >= 0x30 && first <= 0x39) || first === 0x2b || first === 0x2d || first === 0x2e)) return text;
  const dense = text.replaceAll("_", "");
  if (decimal.test(text)) return numberOf(dense.replace("+", ""));
  const whole = parseBasedNumber(dense);
  if (whole !== undefined) return whole;
  const number = real.test(text) ? Number(dense) : Number.NaN;
  return Number.isFinite(number) ? number : text;
}

/** `0644`, `0x1F`, `0b101`, `-0o17`. */
function parseBasedNumber(text: string): number | undefined {
  const parts = based.exec(text);
  if (parts === null) return undefined;
  const [, sign, letter = "", digits = ""] = parts;
  const prefix = letter === "" ? "0o" : `0${letter.toLowerCase()}`;
  const value = Number(prefix + digits);
  if (Number.isNaN(value)) return undefined;
  return sign === "-" ? -value : value;
}

/** Resolves a tagged scalar; undefined when the text does not match the tag. Under other tags it is text. */
export function resolveTagged(tag: string, text: string): string | number | bigint | boolean | null | undefined {
  const value = resolvePlain(text);
  switch (tag) {
    case "!":
    case "!!str":
      return text;
    case "!!int":
      return Number.isInteger(value) || typeof value === "bigint" ? value : undefined;
    case "!!float":
      return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
    case "!!bool":
      return typeof value === "boolean" ? value : undefined;
    case "!!null":
      return value === null ? null : undefined;
    case "!!binary":
      return Buffer.from(text, "base64").toString("latin1");
    default:
      return text;
  }
}
