/** String functions, which count in Unicode characters. */
import { type FunctionDeclaration, functionOf, type Library, method, overload } from "../functions.ts";
import { dynType, intType, listType, stringType, type Type } from "../values/types.ts";
import { ArrayList, fail, type List } from "../values/value.ts";
import { characterOf, countCharacters, search, searchLast, splitText, unitOf } from "./characters.ts";
import { formatText } from "./text-format.ts";

function checkIndex(position: bigint, length: number): number {
  return position < 0n || position > BigInt(length) ? fail(`index out of range: ${position}`) : Number(position);
}

function charAt(text: string, position: bigint): string {
  const at = checkIndex(position, countCharacters(text));
  return text.slice(unitOf(text, at), unitOf(text, at + 1));
}

function indexOf(text: string, part: string, from = 0n): bigint {
  if (part === "") return from;
  if (from < 0n) return fail(`index out of range: ${from}`);
  if (from >= BigInt(countCharacters(text))) return -1n;
  return BigInt(characterOf(text, search(text, part, unitOf(text, Number(from)))));
}

function lastIndexOf(text: string, part: string, from?: bigint): bigint {
  const length = countCharacters(text);
  if (part === "") return from ?? BigInt(length);
  if (from !== undefined && from < 0n) return fail(`index out of range: ${from}`);
  if (from !== undefined && from >= BigInt(length)) return -1n;
  const unit = from === undefined ? text.length : unitOf(text, Number(from));
  return BigInt(characterOf(text, searchLast(text, part, unit)));
}

function substring(text: string, from: bigint, to?: bigint): string {
  const length = countCharacters(text);
  if (to !== undefined && from > to) return fail(`invalid substring range. start: ${from}, end: ${to}`);
  const start = checkIndex(from, length);
  return text.slice(unitOf(text, start), to === undefined ? text.length : unitOf(text, checkIndex(to, length)));
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function upperAscii(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Exceeds the length of any text in a request. */
const RESULT_LENGTH_MAX = 2 ** 24;

/** Replaces `limit` times, or always when negative. The empty text matches before, between and after characters. */
function replace(text: string, old: string, by: string, limit = -1n): string {
  const most = limit < 0n ? Number.POSITIVE_INFINITY : Number(limit);
  const pieces = old === "" ? ["", ...text, ""] : splitText(text, old);
  const times = Math.min(pieces.length - 1, most);
  if (text.length + times * by.length > RESULT_LENGTH_MAX) return fail("text too long");
  const rest = pieces.slice(times);
  const joined = [...pieces.slice(0, times), ""].join(by);
  return joined + rest.join(old);
}

/** Splits into at most `limit` parts, the last with the rest; none for 0, all when negative. */
function split(text: string, separator: string, limit = -1n): List {
  if (limit === 0n) return new ArrayList([]);
  const parts = separator === "" ? [...text] : splitText(text, separator);
  const most = limit < 0n || limit > BigInt(parts.length) ? parts.length : Number(limit);
  if (most === parts.length) return new ArrayList(parts);
  return new ArrayList([...parts.slice(0, most - 1), parts.slice(most - 1).join(separator)]);
}

function join(list: List, separator = ""): string {
  const parts: string[] = [];
  let length = 0;
  for (const item of list) {
    if (typeof item !== "string") return fail("join: invalid input");
    length += item.length + separator.length;
    if (length > RESULT_LENGTH_MAX) return fail("text too long");
    parts.push(item);
  }
  return parts.join(separator);
}

const quoted: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quote(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are escaped
  return `"${text.toWellFormed().replace(/[\x07\b\f\n\r\t\v\\"]/g, (letter) => quoted[letter]!)}"`;
}

// Unicode white space, as in Go.
const space = String.raw`[\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+`;
const outer = new RegExp(`^${space}|${space}$`, "g");

const strings1 = [stringType];
const strings2 = [stringType, stringType];
const strings3 = [stringType, stringType, stringType];

function stringFunction(name: string, id: string, call: (text: string) => string): FunctionDeclaration {
  return functionOf(name, method(id, strings1, stringType, call));
}

/** A function with an optional last argument of type int. */
function withLimit(
  name: string,
  id: string,
  parameters: readonly Type[],
  result: Type,
  call: (...args: never[]) => string | bigint | List,
): FunctionDeclaration {
  return functionOf(
    name,
    method(id, parameters, result, call),
    method(`${id}_int`, [...parameters, intType], result, call),
  );
}

export const strings: Library = {
  functions: [
    functionOf("charAt", method("string_char_at_int", [stringType, intType], stringType, charAt)),
    withLimit("indexOf", "string_index_of_string", strings2, intType, indexOf),
    withLimit("lastIndexOf", "string_last_index_of_string", strings2, intType, lastIndexOf),
    stringFunction("lowerAscii", "string_lower_ascii", lowerAscii),
    stringFunction("upperAscii", "string_upper_ascii", upperAscii),
    withLimit("replace", "string_replace_string_string", strings3, stringType, replace),
    withLimit("split", "string_split_string", strings2, listType(stringType), split),
    withLimit("substring", "string_substring_int", [stringType, intType], stringType, substring),
    stringFunction("trim", "string_trim", (text) => text.replace(outer, "")),
    functionOf("format", method("string_format", [stringType, listType(dynType)], stringType, formatText)),
    functionOf("strings.quote", overload("strings_quote", strings1, stringType, quote)),
    functionOf(
      "join",
      method("list_join", [listType(stringType)], stringType, join),
      method("list_join_string", [listType(stringType), stringType], stringType, join),
    ),
  ],
};

function member(name: string, id: string, test: (text: string, part: string) => boolean): FunctionDeclaration {
  return functionOf(name, method(id, strings2, { kind: "bool" }, test));
}

/** The standard string functions of CEL. */
export const basicStrings: Library = {
  functions: [
    member("contains", "contains_string", (text, part) => text.includes(part)),
    member("startsWith", "starts_with_string", (text, part) => text.startsWith(part)),
    member("endsWith", "ends_with_string", (text, part) => text.endsWith(part)),
  ],
};
