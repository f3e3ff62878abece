/** Strict parsing of JSON text, with Go's handling of invalid Unicode, overlarge numbers and repeated members. */
import { Buffer } from "node:buffer";
import { runSteps, type Steps } from "../../std/async/steps.ts";
import { depthMax, TooManyValuesError } from "../value/limits.ts";
import { NumberLiteral } from "../value/number-literal.ts";
import { parseWithNumbersInSteps } from "./exact-numbers.ts";
import { type JsonScan, scanJson, tooDeepError } from "./scanner.ts";
import { isDigit, numberEnd, stringEnd, UNSAFE_DIGITS } from "./tokens.ts";

export interface ParsedJson {
  readonly value: unknown;
  /** The value can contain a `NumberLiteral`. */
  readonly literals?: boolean;
  /** Paths of members that occur more than once in an object; the last value counts. */
  readonly duplicates: readonly string[];
  /** Present when there are duplicates: their positions and all their values. */
  readonly scan?: JsonScan;
}

/**
 * Throws a `SyntaxError` with line and column when the bytes are not JSON or nest too deeply. Invalid UTF-8 becomes
 * U+FFFD, as in Go. Throws a `TooManyValuesError` for more than `max` values.
 */
export function parseJson(
  bytes: Uint8Array,
  max = Number.POSITIVE_INFINITY,
  options?: { readonly literals: boolean },
): ParsedJson {
  return runSteps(parseJsonInSteps(bytes, max, options));
}

/** The same, for texts of which each step may take many milliseconds. */
export function* parseJsonInSteps(
  bytes: Uint8Array,
  max = Number.POSITIVE_INFINITY,
  options?: { readonly literals: boolean },
): Steps<ParsedJson> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { members: membersInText, longNumbers, otherNumbers } = inspectText(buffer, max);
  const literals = options?.literals === true && (longNumbers || otherNumbers);
  const text = buffer.toString("utf8");
  yield;
  let value: unknown;
  try {
    value = longNumbers || literals ? yield* parseWithNumbersInSteps(buffer, text, literals) : JSON.parse(text);
  } catch (error) {
    scanJson(buffer, depthMax);
    throw error;
  }
  yield;
  if (LONE_SURROGATE.test(text)) {
    value = toWellFormed(value);
    yield;
  }
  // JSON.parse keeps the last of several members of one name: fewer members than colons means duplicates.
  if (countValueMembers(value) === membersInText) return withLiterals({ value, duplicates: [] }, literals);
  yield;
  const scan = scanJson(buffer, depthMax, literals);
  return withLiterals({ value, duplicates: scan.duplicates.map(({ path }) => path), scan }, literals);
}

function withLiterals(parsed: ParsedJson, literals: boolean): ParsedJson {
  return literals ? { ...parsed, literals } : parsed;
}

/** An escaped surrogate, which can be unpaired. */
const LONE_SURROGATE = /\\u[dD][89a-fA-F]/;

/** Replaces unpaired surrogates by U+FFFD, as Go does. */
function toWellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(toWellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.toWellFormed(), toWellFormed(each)]));
}

interface Inspection {
  /** The number of colons outside of strings. */
  readonly members: number;
  /** There are numbers long enough to be integers beyond 2^53. */
  readonly longNumbers: boolean;
  /** There are fractions or exponents that JSON would write otherwise, such as 1.0. */
  readonly otherNumbers: boolean;
}

/**
 * Counts members, and looks for numbers that `JSON.parse` would change. Throws when brackets nest deeper than
 * `depthMax`, and when commas and brackets show that there are more than `max` values.
 */
function inspectText(bytes: Buffer, max: number): Inspection {
  let longNumbers = false;
  let otherNumbers = false;
  let members = 0;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case 0x22:
        at = stringEnd(bytes, at);
        break;
      case 0x2c:
        if (++values > max) throw new TooManyValuesError(max);
        break;
      case 0x3a:
        members++;
        break;
      case 0x5b:
      case 0x7b:
        if (!isClosing(bytes, at + 1) && ++values > max) throw new TooManyValuesError(max);
        if (++depth > depthMax) throw tooDeepError(depthMax);
        break;
      case 0x5d:
      case 0x7d:
        depth--;
        break;
      default:
        if (bytes[at]! >= 0x30 && bytes[at]! <= 0x39) {
          const end = numberEnd(bytes, at);
          longNumbers ||= end - at >= UNSAFE_DIGITS;
          otherNumbers ||= !isDecimal(bytes, at, end) && !isCanonical(bytes, at, end);
          at = end - 1;
        }
    }
  }
  return { members, longNumbers, otherNumbers };
}

function isDecimal(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!isDigit(bytes[at])) return false;
  return true;
}

function isCanonical(bytes: Buffer, start: number, end: number): boolean {
  const text = bytes.toString("latin1", start, end);
  return String(Number(text)) === text;
}

/** Whether only spaces precede a closing bracket. */
function isClosing(bytes: Buffer, start: number): boolean {
  let at = start;
  while (bytes[at] === 0x20 || (bytes[at]! >= 0x09 && bytes[at]! <= 0x0d)) at++;
  return bytes[at] === 0x5d || bytes[at] === 0x7d;
}

/** Counts the members of all objects. Throws for infinite numbers, which JSON cannot represent. */
function countValueMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) {
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) {
      throw new SyntaxError("json: cannot unmarshal number into Go value of type float64");
    }
    return 0;
  }
  if (value instanceof NumberLiteral) return countValueMembers(Number(value.source));
  let members = 0;
  if (Array.isArray(value)) {
    for (const item of value) members += countValueMembers(item);
    return members;
  }
  // Of a large object, V8 lists the names for this faster than for a loop with `in`.
  const names = Object.keys(value);
  for (const name of names) members += countValueMembers((value as Readonly<Record<string, unknown>>)[name]);
  return members + names.length;
}
