/**
 * Parses YAML. Values are JSON-like: no dates, strings as keys. A parsed document has the line of every
 * member, for errors in configuration files.
 */
import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, YAMLException } from "js-yaml";
import type { TimeSlice } from "../../std/async/time-slice.ts";
import { parseJson } from "../json/parse.ts";
import { joinPath } from "../value/field-path.ts";
import { goQuote } from "../value/go-quote.ts";
import { TooManyValuesError } from "../value/limits.ts";
import { isPlainObject, setMember } from "../value/plain-object.ts";
import { countYamlValues } from "./count-values.ts";
import { NEXT_DOCUMENT, toGoErrorMessage } from "./error-messages.ts";
import { firstDocument } from "./first-document.ts";
import { formatGoValue } from "./go-value.ts";
import { resolvePlain, resolveTagged } from "./scalar.ts";

export interface YamlDocument {
  /** Null for an empty document. */
  readonly value: unknown;
  /**
   * The line, counted from one, of a field such as `spec.ports[0].name`; undefined when the document has none. Without
   * `fieldLines` only of duplicate members.
   */
  line(path: string): number | undefined;
  /** The column of the same, counted from one. */
  column(path: string): number | undefined;
  /** Paths of members that occur more than once in a mapping; the last value counts. */
  readonly duplicates: readonly string[];
}

const depthMax = 200;
/** Bounds the values that aliases repeat in one text; nested aliases could otherwise expand to billions. */
const aliasedMax = 100_000;
const duplicatesMax = 100;

/** Throws a `SyntaxError` with the line when the text is not YAML, nests too deeply or has excessive aliases. */
export function parseYaml(text: string): readonly YamlDocument[] {
  return new YamlBuilder(text, eventsOf(text), true).documents();
}

/** As `parseYaml`, of a text that is JSON if it begins with a brace, as Kubernetes reads its configuration files. */
export function parseYamlOrJson(text: string): readonly YamlDocument[] {
  if (text.trimStart().startsWith("{")) {
    try {
      parseJson(Buffer.from(text), Number.POSITIVE_INFINITY);
    } catch (cause) {
      const message = (cause as Error).message.replace(/ \(line \d+, column \d+\)$/, "");
      throw new SyntaxError(`couldn't get version/kind; json parse error: ${message}`, { cause });
    }
  }
  return parseYaml(text);
}

/**
 * The first document of a request's body, without lines of fields, members sorted as in the JSON that Kubernetes
 * converts it to. Throws a `TooManyValuesError` when the text may have more than `max`.
 */
export async function parseYamlBody(text: string, max: number, slice: TimeSlice): Promise<YamlDocument | undefined> {
  if (countYamlValues(text, max) > max) throw new TooManyValuesError(max);
  await slice.yield();
  const [first, events] = firstDocumentEvents(text);
  await slice.yield();
  const document = new YamlBuilder(first, events, false).documents()[0];
  await slice.yield();
  return document;
}

function firstDocumentEvents(text: string): readonly [string, readonly Event[]] {
  const first = firstDocument(text);
  try {
    return [first, parseEvents(first, { maxDepth: depthMax })];
  } catch (error) {
    // Another node may follow the first without a marker: `{a: 1}{b: 2}`.
    const isComplete = error instanceof YAMLException && toGoError(error, first).message.endsWith(NEXT_DOCUMENT);
    const end = isComplete ? error.mark?.position : undefined;
    if (end === undefined) return [text, eventsOf(text)];
    const node = first.slice(0, end);
    return [node, eventsOf(node)];
  }
}

function eventsOf(text: string): readonly Event[] {
  try {
    return parseEvents(text, { maxDepth: depthMax });
  } catch (error) {
    throw error instanceof YAMLException ? toGoError(error, text) : error;
  }
}

function toGoError(error: YAMLException, text: string): SyntaxError {
  const { line = 0, position = 0 } = error.mark ?? {};
  return new SyntaxError(toGoErrorMessage(error.reason, { line, position }, text), { cause: error });
}

/** The errors of a strict parser for duplicate members: `line 3: key "a" already set in map`. */
export function describeDuplicateKeys(document: YamlDocument | undefined): readonly string[] {
  return (document?.duplicates ?? []).map((path) => {
    const [name = ""] = /[^.[\]]*\]?$/.exec(path) ?? [];
    return `line ${document?.line(path) ?? 0}: key ${goQuote(name.replace("]", ""))} already set in map`;
  });
}

interface AnchoredValue {
  readonly value: unknown;
  /** The number of values it contains, itself included. */
  readonly size: number;
}

/** The value of an anchor within itself. */
const UNFINISHED: AnchoredValue = { value: undefined, size: 0 };

const ESCAPES = /\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8})|.)/gs;

class YamlBuilder {
  readonly #text: string;
  readonly #events: readonly Event[];
  readonly #lineStarts: readonly number[];
  #next = 0;
  #aliased = 0;
  #anchors = new Map<string, AnchoredValue>();
  #offsets = new Map<string, number>();
  #duplicates: string[] = [];
  #steps: (string | number)[] = [];

  readonly #fieldLines: boolean;
  readonly #sorted: boolean;

  constructor(text: string, events: readonly Event[], fieldLines: boolean) {
    this.#text = text;
    this.#events = events;
    this.#fieldLines = fieldLines;
    this.#sorted = !fieldLines;
    const starts = [0];
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
    this.#lineStarts = starts;
  }

  documents(): YamlDocument[] {
    const documents: YamlDocument[] = [];
    while (this.#next < this.#events.length) {
      this.#next++;
      this.#anchors = new Map();
      this.#offsets = new Map();
      this.#duplicates = [];
      const value = this.#peek()?.type === EVENT_ID.POP ? null : this.#value().value;
      checkFinite(value);
      this.#next++;
      const offsets = this.#offsets;
      documents.push({
        value,
        duplicates: this.#duplicates,
        line: (path) => {
          const offset = offsets.get(path);
          return offset === undefined ? undefined : this.#lineOf(offset);
        },
        column: (path) => {
          const offset = offsets.get(path);
          return offset === undefined ? undefined : offset - (this.#lineStarts[this.#lineOf(offset) - 1] ?? 0) + 1;
        },
      });
    }
    return documents;
  }

  #peek(): Event | undefined {
    return this.#events[this.#next];
  }

  #value(): AnchoredValue {
    const event = this.#peek();
    this.#next++;
    switch (event?.type) {
      case EVENT_ID.ALIAS:
        return this.#alias(event.anchorStart, event.anchorEnd);
      case EVENT_ID.SCALAR:
        return this.#registerAnchor(event, () => ({ value: this.#scalar(event), size: 1 }));
      case EVENT_ID.SEQUENCE:
        return this.#registerAnchor(event, () => this.#sequence());
      case EVENT_ID.MAPPING:
        return this.#registerAnchor(event, () => this.#mapping());
      default:
        throw new SyntaxError("yaml: unexpected end of the document");
    }
  }

  #registerAnchor(
    event: { readonly anchorStart: number; readonly anchorEnd: number },
    build: () => AnchoredValue,
  ): AnchoredValue {
    if (event.anchorStart < 0) return build();
    const name = this.#text.slice(event.anchorStart, event.anchorEnd);
    this.#anchors.set(name, UNFINISHED);
    const anchored = build();
    this.#anchors.set(name, anchored);
    return anchored;
  }

  #alias(start: number, end: number): AnchoredValue {
    const name = this.#text.slice(start, end);
    const anchored = this.#anchors.get(name);
    if (anchored === undefined) throw new SyntaxError(`yaml: unknown anchor '${name}' referenced`);
    if (anchored === UNFINISHED) throw new SyntaxError(`yaml: anchor '${name}' value contains itself`);
    this.#aliased += anchored.size;
    if (this.#aliased > aliasedMax) throw new SyntaxError("yaml: document contains excessive aliasing");
    return anchored;
  }

  #scalar(event: Extract<Event, { readonly valueStart: number }>): unknown {
    if (event.style === SCALAR_STYLE.DOUBLE_QUOTED) this.#checkEscapes(event.valueStart, event.valueEnd);
    const text = getScalarValue(this.#text, event);
    if (event.tagStart < 0) return event.style === SCALAR_STYLE.PLAIN ? resolvePlain(text) : text;
    const tag = this.#text.slice(event.tagStart, event.tagEnd);
    const value = resolveTagged(tag, text);
    if (value === undefined) throw this.#error(event.tagStart, `cannot decode ${JSON.stringify(text)} as a ${tag}`);
    return value;
  }

  #checkEscapes(start: number, end: number): void {
    const raw = this.#text.slice(start, end);
    if (!/\\u/i.test(raw)) return;
    for (const { 1: short, 2: long, index } of raw.matchAll(ESCAPES)) {
      const code = Number.parseInt(short ?? long ?? "0", 16);
      if (code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) continue;
      const line = this.#lineOf(start + index);
      const where = line === 1 ? "" : `line ${line}: `;
      throw new SyntaxError(`yaml: ${where}found invalid Unicode character escape code`);
    }
  }

  #sequence(): AnchoredValue {
    const items: unknown[] = [];
    let size = 1;
    for (let event = this.#peek(); event?.type !== EVENT_ID.POP; event = this.#peek()) {
      this.#steps.push(items.length);
      if (this.#fieldLines) this.#recordOffset(event);
      const item = this.#value();
      this.#steps.pop();
      checkFinite(item.value);
      items.push(item.value);
      size += item.size;
    }
    this.#next++;
    return { value: items, size };
  }

  #mapping(): AnchoredValue {
    const members: Record<string, unknown> = {};
    const merged: unknown[] = [];
    let size = 1;
    for (let event = this.#peek(); event?.type !== EVENT_ID.POP; event = this.#peek()) {
      const plain = event?.type === EVENT_ID.SCALAR && event.style === SCALAR_STYLE.PLAIN;
      const name = this.#name();
      if (plain && name === "<<") {
        const source = this.#value();
        for (const from of Array.isArray(source.value) ? source.value : [source.value]) merged.push(from);
        size += source.size;
        continue;
      }
      this.#steps.push(name ?? "");
      const isDuplicate = name !== null && Object.hasOwn(members, name) && this.#duplicates.length < duplicatesMax;
      if (isDuplicate) this.#duplicates.push(joinPath(this.#steps));
      // The line of the name, even if the value begins on a later line.
      if (isDuplicate || this.#fieldLines) this.#recordOffset(event);
      const member = this.#value();
      this.#steps.pop();
      checkFinite(member.value);
      if (name === null) throw unsupportedKey(member.value);
      setMember(members, name, member.value);
      size += member.size;
    }
    this.#next++;
    for (const source of merged) this.#merge(members, source);
    return { value: this.#sorted ? sortMembers(members) : members, size };
  }

  /** `<<: *defaults`: adds members that the mapping does not have. */
  #merge(members: Record<string, unknown>, source: unknown): void {
    if (!isPlainObject(source)) throw new SyntaxError("yaml: map merge requires map or sequence of maps as the value");
    for (const name of Object.keys(source)) if (!Object.hasOwn(members, name)) setMember(members, name, source[name]);
  }

  #name(): string | null {
    const { value } = this.#value();
    if (value === null) return null;
    if (typeof value === "object") throw new SyntaxError(`yaml: invalid map key: ${formatGoValue(value)}`);
    if (typeof value === "number" && !Number.isFinite(value))
      return Number.isNaN(value) ? ".nan" : value > 0 ? ".inf" : "-.inf";
    return String(value);
  }

  #recordOffset(event: Event | undefined): void {
    if (event !== undefined) this.#offsets.set(joinPath(this.#steps), offsetOf(event));
  }

  #lineOf(offset: number): number {
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  #error(offset: number, reason: string): SyntaxError {
    return new SyntaxError(`yaml: line ${this.#lineOf(offset)}: ${reason}`);
  }
}

/** JSON has no infinities. As names of members they are text. */
function checkFinite(value: unknown): void {
  if (typeof value !== "number" || Number.isFinite(value)) return;
  throw new SyntaxError(`json: unsupported value: ${Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf"}`);
}

function unsupportedKey(value: unknown): SyntaxError {
  const shown = value === null ? "<nil>" : formatGoValue(value);
  return new SyntaxError(`unsupported map key of type: %!s(<nil>), key: <nil>, value: ${shown}`);
}

function sortMembers(members: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(members);
  if (names.every((name, index) => index === 0 || names[index - 1]! <= name)) return members;
  const sorted: Record<string, unknown> = {};
  for (const name of names.sort()) setMember(sorted, name, members[name]);
  return sorted;
}

function offsetOf(event: Event): number {
  switch (event.type) {
    case EVENT_ID.SCALAR:
      return event.valueStart;
    case EVENT_ID.ALIAS:
      return event.anchorStart;
    case EVENT_ID.MAPPING:
    case EVENT_ID.SEQUENCE:
      return event.start;
    default:
      return 0;
  }
}
