import type { Steps } from "../../std/async/steps.ts";
import { stringifyExact } from "../json/exact-numbers.ts";
import { goQuote } from "../value/go-quote.ts";
import { formatInteger } from "../value/int64.ts";

/** An error of one field, as Kubernetes' `field.Error`. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** `spec.containers[0].name`, `metadata.labels[app/x]`. */
  readonly field: string;
  readonly badValue?: unknown;
  readonly detail: string;
  /**
   * A repetition appears in the message again: Kubernetes formats the value with the addresses of its pointers, so that
   * the texts differ.
   */
  readonly isDistinct?: true;
}

/** The maximum number of errors of one object: validation stops there. */
export const errorsMax = 100;

/** The errors of the items, in order. Stops at `errorsMax`, so that lists of invalid items cost little. */
export function validateEach<T>(
  items: Iterable<T>,
  validate: (item: T, index: number) => readonly FieldError[],
): readonly FieldError[] {
  const errors: FieldError[] = [];
  let index = 0;
  for (const item of items) {
    for (const error of validate(item, index)) errors.push(error);
    if (errors.length >= errorsMax) break;
    index++;
  }
  return errors;
}

/** The same, of items each of which may take long: yields after each. */
export function* validateEachInSteps<T>(
  items: Iterable<T>,
  validate: (item: T, index: number) => Steps<readonly FieldError[]> | readonly FieldError[],
): Steps<readonly FieldError[]> {
  const errors: FieldError[] = [];
  let index = 0;
  for (const item of items) {
    const found = validate(item, index);
    for (const error of "next" in found ? yield* found : found) errors.push(error);
    if (errors.length >= errorsMax) break;
    yield;
    index++;
  }
  return errors;
}

export type FieldErrorType =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueDuplicate"
  | "FieldValueForbidden"
  | "FieldValueNotFound"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueTypeInvalid"
  | "InternalError";

const typeText: Readonly<Record<FieldErrorType, string>> = {
  FieldValueRequired: "Required value",
  FieldValueInvalid: "Invalid value",
  FieldValueNotSupported: "Unsupported value",
  FieldValueDuplicate: "Duplicate value",
  FieldValueForbidden: "Forbidden",
  FieldValueNotFound: "Not found",
  FieldValueTooLong: "Too long",
  FieldValueTooMany: "Too many",
  FieldValueTypeInvalid: "Invalid value",
  InternalError: "Internal error",
};

export function requiredField(field: string, detail = ""): FieldError {
  return { type: "FieldValueRequired", field, badValue: "", detail };
}

export function invalidField(field: string, badValue: BadValue, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, badValue, detail };
}

/** A bad value that the message omits. */
const omitted = Symbol("omitted");

/** An invalid combination of members; the message shows no value. */
export function invalidCombination(field: string, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, badValue: omitted, detail };
}

/** Objects need their schema to be formatted: `goStruct()`. */
export type BadValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly string[]
  | Formatted;

/** A value that is formatted when it is shown. */
abstract class Formatted {
  /** Without it, every object would be one. */
  readonly isFormatted = true;
  abstract toString(): string;
}

/** A value that Go formats without quotes: `Invalid value: floppy: …`. */
class UnquotedText extends Formatted {
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
  override toString(): string {
    return this.text;
  }
}

/** A part of a custom resource. */
class UnstructuredValue extends Formatted {
  readonly #value: unknown;
  constructor(value: unknown) {
    super();
    this.#value = value;
  }
  override toString(): string {
    return formatUnstructured(this.#value, VALUE_SHOWN_MAX);
  }
}

/** A `badValue` of a custom resource: objects and lists are formatted as Go's maps and slices. */
export function unstructured(value: unknown): BadValue {
  return typeof value === "object" && value !== null ? new UnstructuredValue(value) : (value as BadValue);
}

/** A `badValue` that is formatted without quotes. */
export function unquoted(text: string): BadValue {
  return new UnquotedText(text);
}

/** A `badValue` for an RFC 3339 time, formatted as Go does. */
export function unquotedTime(time: string): BadValue {
  return unquoted(`${time.replace("T", " ").replace(/(?:\.0+|(\.\d*[1-9])0*)?Z$/, "$1")} +0000 UTC`);
}

/** An invalid value of a Go type that is formatted without quotes, such as a resource name. */
export function invalidUnquoted(field: string, text: string, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, badValue: new UnquotedText(text), detail };
}

/** An invalid string map: `Invalid value: map[string]string{"app":"web"}: …`. */
export function invalidMap(
  field: string,
  texts: Readonly<Record<string, string>> | undefined,
  detail: string,
): FieldError {
  return { type: "FieldValueInvalid", field, badValue: unquoted(formatGoMap(texts)), detail };
}

/** Formats as Go's `%#v`: `map[string]string{"app":"web"}`. */
export function formatGoMap(texts: Readonly<Record<string, string>> | undefined): string {
  if (texts === undefined) return "map[string]string(nil)";
  const members = Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[string]string{${members.map(([k, v]) => `${goQuote(k)}:${goQuote(v)}`).join(", ")}}`;
}

/** Lists the supported values in the given order. */
export function notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError {
  const quoted = supported.map((value) => goQuote(value));
  const detail = quoted.length === 0 ? "" : `supported values: ${quoted.join(", ")}`;
  return { type: "FieldValueNotSupported", field, badValue, detail };
}

export function duplicateField(field: string, badValue: unknown): FieldError {
  return { type: "FieldValueDuplicate", field, badValue, detail: "" };
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field, badValue: "", detail };
}

export function notFoundField(field: string, badValue: unknown): FieldError {
  return { type: "FieldValueNotFound", field, badValue, detail: "" };
}

/** `bytes` is the longest text allowed. */
export function tooLong(field: string, bytes: number): FieldError {
  return { type: "FieldValueTooLong", field, badValue: "", detail: `may not be more than ${bytes} bytes` };
}

/** A negative `actual` means that the number is unknown. */
export function tooMany(field: string, actual: number, most: number): FieldError {
  const items = most === 1 ? "item" : "items";
  const badValue = actual < 0 ? undefined : actual;
  return { type: "FieldValueTooMany", field, badValue, detail: `must have at most ${most} ${items}` };
}

/**
 * The message without the field: `Invalid value: "x": must be no more than 63 bytes`. Values are formatted as in Go:
 * strings quoted, numbers and booleans unquoted, string lists as `[]string{"a"}`, bytes as `[]byte{0x61}`, anything
 * else as JSON.
 */
export function renderFieldError(error: FieldError): string {
  const type = typeText[error.type];
  const detail = error.detail === "" ? undefined : error.detail;
  return [type, formatBadValue(error), detail].filter((part) => part !== undefined).join(": ");
}

function formatBadValue(error: FieldError): string | undefined {
  switch (error.type) {
    case "FieldValueRequired":
    case "FieldValueForbidden":
    case "FieldValueTooLong":
    case "InternalError":
      return undefined;
    case "FieldValueTooMany":
      return error.badValue === undefined ? undefined : formatValue(error.badValue);
    default:
      return error.badValue === omitted ? undefined : formatValue(error.badValue);
  }
}

function formatValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return goQuote(shorten(value));
    case "number":
      return Number.isInteger(value) && Math.abs(value) <= 2 ** 63 ? formatInteger(value) : String(value);
    case "bigint":
    case "boolean":
      return String(value);
    case "undefined":
      return '"null"';
    default:
      if (value === null) return '"null"';
      if (value instanceof Formatted) return shorten(value.toString());
      if (value instanceof Uint8Array)
        return `[]byte{${[...value.subarray(0, BYTES_SHOWN_MAX)].map(formatByte).join(", ")}}`;
      // Decoding leaves no empty lists: an empty one was absent.
      if (Array.isArray(value) && value.length === 0) return "[]string(nil)";
      if (isStringList(value))
        return shorten(`[]string{${value.slice(0, ITEMS_SHOWN_MAX).map(formatValue).join(", ")}}`);
      return shorten(stringifyExact(value));
  }
}

/** As Go's `%#v` of decoded JSON: `map[string]interface {}{"a":[]interface {}{1}}`. Stops at about `max` characters. */
function formatUnstructured(value: unknown, max: number): string {
  let left = max;
  const join = <T>(items: readonly T[], format: (item: T) => string): string => {
    let text = "";
    for (const [index, item] of items.entries()) {
      if (left < 0) break;
      const part = (index === 0 ? "" : ", ") + format(item);
      left -= part.length;
      text += part;
    }
    return text;
  };
  const format = (part: unknown): string => {
    if (part === null || part === undefined) return "interface {}(nil)";
    if (typeof part === "string") return goQuote(shorten(part));
    if (typeof part === "number" && !Number.isInteger(part)) return formatFloat(part);
    if (typeof part !== "object") return formatValue(part);
    if (Array.isArray(part)) return `[]interface {}{${join(part, format)}}`;
    const members = Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1));
    return `map[string]interface {}{${join(members, ([name, member]) => `${goQuote(name)}:${format(member)}`)}}`;
  };
  return format(value);
}

/** Go has exponents of two digits at least, below 0.0001. */
function formatFloat(value: number): string {
  const text = Math.abs(value) < 1e-4 ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

/** The maximum length of a value in a message, in characters: errors must not multiply the size of a request. */
const VALUE_SHOWN_MAX = 16_384;

const ITEMS_SHOWN_MAX = 1000;

function shorten(text: string): string {
  return text.length > VALUE_SHOWN_MAX ? `${text.slice(0, VALUE_SHOWN_MAX)}...` : text;
}

/** Each byte takes six characters of the message. */
const BYTES_SHOWN_MAX = 4096;

function formatByte(byte: number): string {
  return `0x${byte.toString(16)}`;
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** All errors of a configuration file as one text, as Kubernetes joins them: repeated ones once. */
export function renderFieldErrors(errors: readonly FieldError[]): string {
  const [first = "", ...more] = new Set(errors.map((error) => `${error.field}: ${renderFieldError(error)}`));
  return more.length === 0 ? first : `[${[first, ...more].join(", ")}]`;
}
