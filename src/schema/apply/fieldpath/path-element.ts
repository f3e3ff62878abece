import { parseExact, stringifyExact } from "../../json/exact-numbers.ts";

/**
 * One step of a path to a field, serialized as in FieldsV1: `f:name` is a struct field or map key, `k:{"name":"c"}` the
 * list item with these keys, `v:"a"` the item of a set, `i:0` the item at an index. Equal elements have equal text.
 */

const SELF = ".";
/** Types of elements in the order in which Kubernetes sorts them; `.` comes first. */
const ORDER = ".fkvi";

export function fieldElement(name: string): string {
  return `f:${name}`;
}

/** `fields` must be sorted by name. */
export function keyElement(fields: readonly (readonly [name: string, value: unknown])[]): string {
  let text = "k:{";
  for (const [name, value] of fields) text += `${text.length === 3 ? "" : ","}${goJson(name)}:${goJson(value)}`;
  return `${text}}`;
}

export function valueElement(value: unknown): string {
  return `v:${goJson(value)}`;
}

/** Text that Go's encoder writes without escapes. */
const PLAIN = /^[\x20\x21\x23-\x25\x27-\x3b\x3d\x3f-\x5b\x5d-\x7e]*$/;

/** JSON as Go writes it: HTML special characters are escaped. */
function goJson(value: unknown): string {
  if (typeof value === "string" && PLAIN.test(value)) return `"${value}"`;
  return stringifyExact(sortMembersDeep(value)).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Sorts the members of all objects by name. */
function sortMembersDeep(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sortMembersDeep);
  const entries = Object.entries(value).map(([name, member]) => [name, sortMembersDeep(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Returns the element as `keyElement` or `valueElement` would serialize it. Undefined for unknown types, which later
 * versions may add. Throws a `SyntaxError` for text that is not an element.
 */
export function canonicalElement(text: string): string | undefined {
  if (text.startsWith("f:") || PLAIN_ELEMENT.test(text)) return text;
  let element = canonicalElements.get(text);
  if (element === undefined) {
    element = canonicalize(text);
    if (element === undefined) return undefined;
    if (canonicalElements.size >= CACHED_ELEMENTS_MAX) canonicalElements.clear();
    canonicalElements.set(text, element);
  }
  return element;
}

/** Few distinct elements occur many times. */
const canonicalElements = new Map<string, string>();
const CACHED_ELEMENTS_MAX = 10_000;

function canonicalize(text: string): string | undefined {
  if (text.length < 2) throw new SyntaxError("key must be 2 characters long:");
  if (text[1] !== ":") throw new SyntaxError(`missing colon: ${text}`);
  const content = text.slice(2);
  switch (text[0]) {
    case "v":
      return valueElement(parseExact(content));
    case "k":
      return keyElement(keysOf(content));
    case "i":
      if (!/^[-+]?\d+$/.test(content)) throw new SyntaxError(`"${content}" is not a list index`);
      return `i:${Number(content)}`;
    default:
      return undefined;
  }
}

type Keys = readonly (readonly [name: string, value: unknown])[];

/** Parsed keys of recently read elements. */
const keys = new Map<string, Keys>();

function keysOf(content: string): Keys {
  let parsed = keys.get(content);
  if (parsed === undefined) {
    parsed = parseKeys(content);
    if (keys.size >= CACHED_ELEMENTS_MAX) keys.clear();
    keys.set(content, parsed);
  }
  return parsed;
}

function parseKeys(content: string): Keys {
  const parsed: unknown = parseExact(content);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new SyntaxError(`keys of a list item must be an object: ${content}`);
  }
  return Object.entries(parsed).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Formats the element for messages: `.name`, `[name="c"]`, `[="a"]`, `[0]`. */
export function formatElement(element: string): string {
  const content = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${content}`;
    case "k":
      return `[${keysOf(content)
        .map(([name, value]) => `${name}=${stringifyExact(value)}`)
        .join(",")}]`;
    case "v":
      return `[=${stringifyExact(parseExact(content))}]`;
    default:
      return `[${content}]`;
  }
}

export function formatPath(path: readonly string[]): string {
  return path.map(formatElement).join("");
}

/**
 * Elements that sort as their text: fields, and values and single keys without characters that JSON escapes or that
 * precede the quote at their end.
 */
const PLAIN_ELEMENT =
  /^(?:\.|f:[\0-\ud7ff]*|v:"[\x23-\x5b\x5d-\x7e]*"|k:\{"[\x23-\x5b\x5d-\x7e]*":"[\x23-\x5b\x5d-\x7e]*"\})$/;

function arePlain(elements: readonly string[]): boolean {
  for (let index = 0; index < elements.length; index++) if (!PLAIN_ELEMENT.test(elements[index]!)) return false;
  return true;
}

export function areSorted(elements: readonly string[]): boolean {
  if (elements.length < 2) return true;
  const plain = arePlain(elements);
  for (let index = 1; index < elements.length; index++) {
    const [before, after] = [elements[index - 1]!, elements[index]!];
    if (plain ? before > after : compareElements(before, after) > 0) return false;
  }
  return true;
}

/** Sorts in place and parses the keys of each element only once. */
export function sortElements(elements: string[]): string[] {
  if (elements.length < 2) return elements;
  if (arePlain(elements)) return elements.sort();
  const read = new Map(elements.filter(isKeyed).map((element) => [element, keysOf(element.slice(2))]));
  return elements.sort((a, b) => {
    const [keys, otherKeys] = [read.get(a), read.get(b)];
    return keys === undefined || otherKeys === undefined ? compareElements(a, b) : compareKeys(keys, otherKeys);
  });
}

function isKeyed(element: string): boolean {
  return element.startsWith("k:");
}

/** The order in which Kubernetes writes the elements of a set. */
export function compareElements(a: string, b: string): number {
  if (a === b) return 0;
  const kind = ORDER.indexOf(a[0]!) - ORDER.indexOf(b[0]!);
  if (kind !== 0) return kind;
  switch (a[0]) {
    case "k":
      return compareKeys(keysOf(a.slice(2)), keysOf(b.slice(2)));
    case "v":
      // Sets can be long and mostly contain strings without escapes.
      if (isUnescapedValue(a) && isUnescapedValue(b)) return compareText(a.slice(3, -1), b.slice(3, -1));
      return compareValues(parseExact(a.slice(2)), parseExact(b.slice(2)));
    case "i":
      return Number(a.slice(2)) - Number(b.slice(2));
    case SELF:
      return 0;
    default:
      return compareText(a, b);
  }
}

function isUnescapedValue(element: string): boolean {
  return element[2] === '"' && !element.includes("\\");
}

function compareKeys(a: Keys, b: Keys): number {
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const [name, value] = a[index]!;
    const [otherName, otherValue] = b[index]!;
    const order = compareText(name, otherName) || compareValues(value, otherValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const TYPES = ["number", "string", "boolean", "list", "map", "null"];

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (typeof value === "bigint") return "number";
  return typeof value === "object" ? "map" : typeof value;
}

function compareValues(a: unknown, b: unknown): number {
  const type = typeOf(a);
  const order = TYPES.indexOf(type) - TYPES.indexOf(typeOf(b));
  if (order !== 0) return order;
  switch (type) {
    case "number":
    case "boolean":
      return Number(a) - Number(b);
    case "string":
      return compareText(a as string, b as string);
    default:
      return compareText(goJson(a), goJson(b));
  }
}

/** Below the surrogates, UTF-16 units sort as UTF-8 does. */
const SURROGATES = 0xd800;

/** Compares UTF-8 bytes, as Go does. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const one = a.charCodeAt(index);
    const other = b.charCodeAt(index);
    if (one === other) continue;
    return Math.max(one, other) < SURROGATES ? one - other : Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  return a.length - b.length;
}
