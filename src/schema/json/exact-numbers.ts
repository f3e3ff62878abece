/** Numbers of JSON text that doubles cannot hold: integers beyond 2^53 become bigints, as long as 64 bits hold them. */

import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { runSteps, type Steps } from "../../std/async/steps.ts";
import { NumberLiteral } from "../value/number-literal.ts";
import { setMember } from "../value/plain-object.ts";
import { isDigit, numberEnd, stringEnd, UNSAFE_DIGITS } from "./tokens.ts";

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
/** Of the least 64-bit integer with its sign. */
const INT64_LENGTH_MAX = 20;
const MANY_DIGITS = /\d{16}/;

/** As Go decodes a number of unknown type: a 64-bit integer where possible, otherwise a double. */
export function numberOf(source: string): number | bigint {
  const number = Number(source);
  if (Number.isSafeInteger(number) || !INTEGER.test(source)) return number;
  // Conversions of millions of digits take too long.
  if (source.length > INT64_LENGTH_MAX) return number;
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

/**
 * `JSON.parse` of the text, which the bytes encode, with exact numbers. Those that it would change are strings in the
 * text that it parses, since a reviver takes several times as long, in one step. Throws the `SyntaxError` of
 * `JSON.parse`.
 */
export function* parseWithNumbersInSteps(bytes: Buffer, text: string, literals: boolean): Steps<unknown> {
  const { marked, sources } = markNumbers(bytes, literals);
  if (sources.length === 0) return JSON.parse(text);
  yield;
  let value: unknown;
  try {
    value = JSON.parse(marked);
  } catch {
    // The error describes the original text.
    return JSON.parse(text);
  }
  yield;
  return replaceMarks(value, (index) => readNumber(sources[index] ?? "", literals));
}

/** No client can write a string that begins with it. */
const MARK = randomBytes(12).toString("base64");
const QUOTE = 0x22;
const MINUS = 0x2d;
const COLON = 0x3a;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The text with strings in place of the numbers that `JSON.parse` would change. What is no JSON remains none. */
function markNumbers(bytes: Buffer, literals: boolean): { readonly marked: string; readonly sources: string[] } {
  const sources: string[] = [];
  const parts: string[] = [];
  // Has the offsets of the bytes, and its parts are not copied.
  const latin1 = bytes.toString("latin1");
  let copied = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = stringEnd(bytes, at);
    if (byte !== MINUS && !isDigit(byte)) continue;
    const start = at;
    const end = numberEnd(bytes, start);
    at = end - 1;
    if (end - start < UNSAFE_DIGITS && !literals) continue;
    const source = latin1.slice(start, end);
    if (!isChanged(source, literals) || isName(bytes, end)) continue;
    parts.push(latin1.slice(copied, start), `"${MARK}${sources.length}"`);
    sources.push(source);
    copied = end;
  }
  parts.push(latin1.slice(copied));
  return { marked: Buffer.from(parts.join(""), "latin1").toString("utf8"), sources };
}

/** Whether a colon follows: as a string the number would be the name of a member. */
function isName(bytes: Buffer, end: number): boolean {
  let at = end;
  while (bytes[at] === 0x20 || (bytes[at]! >= 0x09 && bytes[at]! <= 0x0d)) at++;
  return bytes[at] === COLON;
}

function isChanged(source: string, literals: boolean): boolean {
  const isLong = source.length >= UNSAFE_DIGITS;
  return (isLong || (literals && !INTEGER.test(source))) && NUMBER.test(source);
}

/** Changes the value itself. */
function replaceMarks(value: unknown, numberAt: (index: number) => unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? numberAt(Number(value.slice(MARK.length))) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) value[index] = replaceMarks(item, numberAt);
    return value;
  }
  const members = value as Record<string, unknown>;
  for (const name of Object.keys(members)) {
    const member = members[name];
    const replaced = replaceMarks(member, numberAt);
    if (replaced !== member) setMember(members, name, replaced);
  }
  return value;
}

/** `JSON.parse` with bigints for integers beyond 2^53. */
export function parseExact(text: string): unknown {
  return MANY_DIGITS.test(text) ? runSteps(parseWithNumbersInSteps(Buffer.from(text), text, false)) : JSON.parse(text);
}

/** Replaces the literals in a value of unknown type. */
export function withoutLiterals(value: unknown): unknown {
  if (value instanceof NumberLiteral) return numberOf(value.source);
  if (Array.isArray(value)) return value.map(withoutLiterals);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutLiterals(member)]));
}
