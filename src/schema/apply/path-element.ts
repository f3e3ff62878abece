/**
 * One step of a path to a field, as FieldsV1 spells it: `f:name` is a member, `k:{"name":"c"}` the item of a list with
 * these keys, `v:"a"` the item of a set, `i:0` the item at a place. Spelled the same, they are the same.
 */

const SELF = ".";
/** Kinds of elements in the order in which Kubernetes sorts them; `.` goes first of all. */
const ORDER = ".fkvi";

export function fieldElement(name: string): string {
  return `f:${name}`;
}

/** `fields` in the order of their names. */
export function keyElement(fields: readonly (readonly [name: string, value: unknown])[]): string {
  let text = "k:{";
  for (const [name, value] of fields) text += `${text.length === 3 ? "" : ","}${goJson(name)}:${goJson(value)}`;
  return `${text}}`;
}

export function valueElement(value: unknown): string {
  return `v:${goJson(value)}`;
}

/** Text that Go's encoder writes as it is. */
const PLAIN = /^[\x20\x21\x23-\x25\x27-\x3b\x3d\x3f-\x5b\x5d-\x7e]*$/;

/** JSON as Go writes it: what HTML gives a meaning is escaped. */
function goJson(value: unknown): string {
  if (typeof value === "string" && PLAIN.test(value)) return `"${value}"`;
  return (JSON.stringify(sortMembersDeep(value)) ?? "null").replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Members of objects by name. */
function sortMembersDeep(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(sortMembersDeep);
  const entries = Object.entries(value).map(([name, member]) => [name, sortMembersDeep(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The element as `keyElement` and its like would spell it. Undefined for kinds of elements of times to come, which are
 * dropped. Throws a `SyntaxError` for text that is none.
 */
export function canonicalElement(text: string): string | undefined {
  if (text.startsWith("f:")) return text;
  let element = canonicalElements.get(text);
  if (element === undefined) {
    element = canonicalize(text);
    if (element === undefined) return undefined;
    if (canonicalElements.size >= CACHED_ELEMENTS_MAX) canonicalElements.clear();
    canonicalElements.set(text, element);
  }
  return element;
}

/** The same few items are met again and again. */
const canonicalElements = new Map<string, string>();
const CACHED_ELEMENTS_MAX = 10_000;

function canonicalize(text: string): string | undefined {
  if (text.length < 2) throw new SyntaxError("key must be 2 characters long:");
  if (text[1] !== ":") throw new SyntaxError(`missing colon: ${text}`);
  const content = text.slice(2);
  switch (text[0]) {
    case "v":
      return valueElement(JSON.parse(content));
    case "k":
      return keyElement(keysOf(content));
    case "i":
      if (!/^[-+]?\d+$/.test(content)) throw new SyntaxError(`"${content}" is no place in a list`);
      return `i:${Number(content)}`;
    default:
      return undefined;
  }
}

type Keys = readonly (readonly [name: string, value: unknown])[];

/** The keys of the items that were met lately. */
const keys = new Map<string, Keys>();

function keysOf(content: string): Keys {
  let known = keys.get(content);
  if (known === undefined) {
    known = parseKeys(content);
    if (keys.size >= CACHED_ELEMENTS_MAX) keys.clear();
    keys.set(content, known);
  }
  return known;
}

function parseKeys(content: string): Keys {
  const parsed: unknown = JSON.parse(content);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new SyntaxError(`the keys of a list's item are an object, not ${content}`);
  }
  return Object.entries(parsed).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** For people: `.name`, `[name="c"]`, `[="a"]`, `[0]`. */
export function formatElement(element: string): string {
  const content = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${content}`;
    case "k":
      return `[${keysOf(content)
        .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
        .join(",")}]`;
    case "v":
      return `[=${JSON.stringify(JSON.parse(content))}]`;
    default:
      return `[${content}]`;
  }
}

export function formatPath(path: readonly string[]): string {
  return path.map(formatElement).join("");
}

/** Sorts in place, reading each element's keys but once. */
export function sortElements(elements: string[]): string[] {
  if (elements.length < 2) return elements;
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
      // Sets may be long, and mostly hold texts without escapes.
      if (isUnescapedValue(a) && isUnescapedValue(b)) return compareText(a.slice(3, -1), b.slice(3, -1));
      return compareValues(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)));
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
  for (let place = 0; place < Math.min(a.length, b.length); place++) {
    const [name, value] = a[place]!;
    const [otherName, otherValue] = b[place]!;
    const order = compareText(name, otherName) || compareValues(value, otherValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const TYPES = ["number", "string", "boolean", "list", "map", "null"];

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
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

/** By UTF-8 bytes, as Go does. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let place = 0; place < length; place++) {
    const one = a.charCodeAt(place);
    const other = b.charCodeAt(place);
    if (one === other) continue;
    return Math.max(one, other) < SURROGATES ? one - other : Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  return a.length - b.length;
}
