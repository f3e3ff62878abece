/** Numbers of JSON text that doubles cannot hold: integers beyond 2^53 become bigints, as long as 64 bits hold them. */

import { NumberLiteral } from "../value/number-literal.ts";

declare global {
  interface JSON {
    parse(
      text: string,
      reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

/** `JSON.stringify` for values with bigints, which it refuses itself. Values without any are as fast. */
export function stringifyExact(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent) ?? "null";
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(value, writeBigInt, indent);
  }
}

function writeBigInt(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? JSON.rawJSON(String(value)) : value;
}

const INTEGER = /^-?\d+$/;
const MANY_DIGITS = /\d{16}/;

/** As Go decodes a number of unknown type: a 64-bit integer where possible, otherwise a double. */
export function numberOf(source: string): number | bigint {
  const number = Number(source);
  if (Number.isSafeInteger(number) || !INTEGER.test(source)) return number;
  const integer = BigInt(source);
  return BigInt.asIntN(64, integer) === integer ? integer : number;
}

function literalOf(source: string): number | bigint | NumberLiteral {
  const value = numberOf(source);
  if (typeof value === "bigint" || (Number.isSafeInteger(value) && INTEGER.test(source))) return value;
  return String(value) === source ? value : new NumberLiteral(source);
}

/**
 * For a number in a text: `literals` keeps as `NumberLiteral`s those that are no 64-bit integers and that JSON would
 * write otherwise.
 */
export function readNumber(source: string, literals: boolean): number | bigint | NumberLiteral {
  return literals ? literalOf(source) : numberOf(source);
}

/** `JSON.parse` with exact numbers, at a quarter of the speed. */
export function parseWithNumbers(text: string, literals: boolean): unknown {
  return JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined ? readNumber(source, literals) : value,
  );
}

/** `JSON.parse` with bigints for integers beyond 2^53. */
export function parseExact(text: string): unknown {
  return MANY_DIGITS.test(text) ? parseWithNumbers(text, false) : JSON.parse(text);
}

/** Replaces the literals in a value of unknown type. */
export function withoutLiterals(value: unknown): unknown {
  if (value instanceof NumberLiteral) return numberOf(value.source);
  if (Array.isArray(value)) return value.map(withoutLiterals);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutLiterals(member)]));
}
