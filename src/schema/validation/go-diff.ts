/**
 * Formats the difference of two values in the layout of Go's `cmp.Diff`, which messages about immutable fields contain:
 *
 *       core.PodSpec{
 *       	... // 4 identical fields
 *     - 	NodeName: "a",
 *     + 	NodeName: "b",
 *       }
 */
import { stringifyExact } from "../json/exact-numbers.ts";
import { membersOf } from "../members.ts";
import type { Field, ObjectSchema, Schema } from "../schema.ts";
import { deepEqual } from "../value/equal.ts";
import { goQuote } from "../value/go-quote.ts";
import { formatInteger } from "../value/int64.ts";
import { getMember } from "../value/plain-object.ts";

/** The maximum length of a difference, in characters. */
const DIFF_MAX = 8192;

/** Equal fields and items shown on each side of a difference. */
const CONTEXT = 2;

type Mode = " " | "-" | "+";

/** Empty when the values are equal. `type` is the name of the Go type of the values: `core.PodSpec`. */
export function formatGoDiff(schema: ObjectSchema, type: string, before: unknown, after: unknown): string {
  if (deepEqual(before, after)) return "";
  const writer = new DiffWriter();
  writer.object(schema, "", `${type}{`, before, after, 0);
  return writer.text();
}

interface Entry {
  readonly label: string;
  readonly schema: Schema;
  /** A `&` precedes the value. */
  readonly pointer: boolean;
  readonly before: unknown;
  readonly after: unknown;
}

class DiffWriter {
  readonly #lines: string[] = [];
  #length = 0;

  text(): string {
    const text = `${this.#lines.join("\n")}\n`;
    return text.length > DIFF_MAX ? `${text.slice(0, DIFF_MAX)}...\n` : text;
  }

  object(schema: ObjectSchema, label: string, open: string, before: unknown, after: unknown, depth: number): void {
    this.#line(" ", depth, `${label}${open}`);
    const [old, now] = [before, after] as [Members, Members];
    const entries = membersOf(schema).map(({ name, field, schema }) => ({
      label: `${goFieldName(name)}: `,
      schema,
      pointer: isPointer(field),
      before: old[name],
      after: now[name],
    }));
    this.#entries(entries, "field", depth + 1);
    this.#line(" ", depth, depth === 0 ? "}" : "},");
  }

  #entries(entries: readonly Entry[], what: string, depth: number): void {
    const changed = entries.map(({ before, after }) => !deepEqual(before, after));
    const isShown = (at: number): boolean => changed.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).includes(true);
    let hidden = 0;
    const writeHidden = (): void => {
      if (hidden > 0) this.#line(" ", depth, `... // ${hidden} identical ${hidden === 1 ? what : pluralOf(what)}`);
      hidden = 0;
    };
    for (const [at, entry] of entries.entries()) {
      if (this.#length > DIFF_MAX) return;
      if (!isShown(at)) {
        hidden++;
        continue;
      }
      writeHidden();
      if (changed[at]) this.#changed(entry, depth);
      else this.#value(" ", entry, entry.before, depth);
    }
    writeHidden();
  }

  #changed(entry: Entry, depth: number): void {
    const { label, schema, pointer, before, after } = entry;
    const isChange = before !== undefined && after !== undefined;
    if (isChange && schema.type === "object") {
      this.object(schema, label, `${pointer ? "&" : ""}${goTypeName(schema)}{`, before, after, depth);
    } else if (isChange && (schema.type === "list" || schema.type === "map")) {
      this.#line(" ", depth, `${label}${goTypeName(schema)}{`);
      if (schema.type === "list") this.#entries(itemsOf(schema.items, before, after), "element", depth + 1);
      else this.#entries(mapEntriesOf(schema.values, before, after), "entry", depth + 1);
      this.#line(" ", depth, "},");
    } else {
      // An absent item of a list or map has no line.
      const isItem = label === "" || label.startsWith('"');
      if (before !== undefined || !isItem) this.#value("-", entry, before, depth);
      if (after !== undefined || !isItem) this.#value("+", entry, after, depth);
    }
  }

  #value(mode: Mode, { label, schema, pointer }: Entry, value: unknown, depth: number): void {
    const text = formatGoLiteral(schema, value, pointer);
    this.#line(mode, depth, `${label}${text},`);
  }

  #line(mode: Mode, depth: number, text: string): void {
    const line = `${mode} ${"\t".repeat(depth)}${text.length > DIFF_MAX ? `${text.slice(0, DIFF_MAX)}...` : text}`;
    this.#length += line.length;
    this.#lines.push(line);
  }
}

type Members = Readonly<Record<string, unknown>>;

export function isPointer({ presence, nilable }: Field): boolean {
  return presence === "pointer" || nilable === true;
}

/** Items at the same index belong together, except for those that were added or removed at one place. */
function itemsOf(schema: Schema, before: unknown, after: unknown): readonly Entry[] {
  const [old, now] = [before, after] as [readonly unknown[], readonly unknown[]];
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && deepEqual(old[head], now[head])) head++;
  let tail = 0;
  while (tail < shorter - head && deepEqual(old[old.length - 1 - tail], now[now.length - 1 - tail])) tail++;
  const entry = (before: unknown, after: unknown): Entry => ({ label: "", schema, pointer: false, before, after });
  const middle = Math.max(old.length, now.length) - head - tail;
  const changed = Array.from({ length: middle }, (_, at) => {
    const [was, is] = [old, now].map((list) => (head + at < list.length - tail ? list[head + at] : undefined));
    return entry(was, is);
  });
  const same = (items: readonly unknown[]): Entry[] => items.map((item) => entry(item, item));
  return [...same(old.slice(0, head)), ...changed, ...same(old.slice(old.length - tail))];
}

function mapEntriesOf(schema: Schema, before: unknown, after: unknown): readonly Entry[] {
  const [old, now] = [before, after] as [Members, Members];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])].sort();
  return keys.map((key) => ({
    label: `${goQuote(key)}: `,
    schema,
    pointer: false,
    before: getMember(old, key),
    after: getMember(now, key),
  }));
}

function pluralOf(what: string): string {
  return what === "entry" ? "entries" : `${what}s`;
}

/** A value on one line: `&core.HTTPGetAction{Path: "/", Port: "80"}`. */
function formatGoLiteral(schema: Schema, value: unknown, pointer: boolean): string {
  if (value === undefined || value === null) return zeroLiteral(schema, pointer);
  const literal = formatValue(schema, value);
  return pointer ? `&${literal}` : literal;
}

function formatValue(schema: Schema, value: unknown): string {
  switch (schema.type) {
    case "object": {
      const members = value as Members;
      const fields = membersOf(schema)
        .filter(({ name }) => members[name] !== undefined)
        .map(({ name, field, schema }) => {
          return `${goFieldName(name)}: ${formatGoLiteral(schema, members[name], isPointer(field))}`;
        });
      return `${goTypeName(schema)}{${fields.join(", ")}}`;
    }
    case "list": {
      const items = joinShown(value as readonly unknown[], (item) => {
        const text = formatValue(schema.items, item);
        return schema.items.type === "object" ? text.slice(text.indexOf("{")) : text;
      });
      return `${goTypeName(schema)}{${items}}`;
    }
    case "map": {
      const entries = Object.entries(value as Members).sort(([a], [b]) => (a < b ? -1 : 1));
      const texts = joinShown(entries, ([key, member]) => `${goQuote(key)}: ${formatValue(schema.values, member)}`);
      return `${goTypeName(schema)}{${texts}}`;
    }
    case "special":
      // cmp.Diff shows values with a String method so.
      return schema.format === "intOrString" && typeof value === "number"
        ? String(value)
        : `s${goQuote(String(value))}`;
    case "integer":
      return formatInteger(value as number | bigint);
    default:
      return typeof value === "string" ? goQuote(value) : stringifyExact(value);
  }
}

/** Joins what is shown of the items: a longer text is cut. */
function joinShown<T>(items: readonly T[], format: (item: T) => string): string {
  let text = "";
  for (const item of items) {
    text += `${text === "" ? "" : ", "}${format(item)}`;
    if (text.length > DIFF_MAX) break;
  }
  return text;
}

function zeroLiteral(schema: Schema, pointer: boolean): string {
  if (pointer) return "nil";
  switch (schema.type) {
    case "string":
    case "enum":
      return '""';
    case "integer":
    case "number":
      return "0";
    case "boolean":
      return "false";
    case "object":
      return `${goTypeName(schema)}{}`;
    case "special":
      return 's""';
    default:
      return "nil";
  }
}

/** Kubernetes validates internal types, whose package has no version: `core.PodSpec`. */
export function goTypeName(schema: Schema): string {
  const internal = (goType: string): string => goType.replace(/^v\d\w*\./, "core.");
  if (schema.goType !== undefined) return internal(schema.goType);
  switch (schema.type) {
    case "object":
      return schema.name.replace(/\/[^.]*\./, ".");
    case "list":
      return `[]${goTypeName(schema.items)}`;
    case "map":
      return `map[string]${goTypeName(schema.values)}`;
    case "integer":
      return schema.width;
    case "number":
      return "float64";
    case "boolean":
      return "bool";
    case "bytes":
      return "[]uint8";
    case "special":
      return schema.format === "quantity" ? "resource.Quantity" : schema.format;
    default:
      return "string";
  }
}

const INITIALISMS: ReadonlySet<string> = new Set(
  "api aws csi dns fc fs gce grpc http id ip iscsi nfs os pid rbd se tcp tls tty uid uri url".split(" "),
);
/** Names whose first word is written otherwise. */
const WORDS: Readonly<Record<string, string>> = { cephfs: "CephFS", storageos: "StorageOS" };

/** The Go name of a JSON member: `hostIP` is `HostIP`, `dnsPolicy` is `DNSPolicy`. */
export function goFieldName(name: string): string {
  const first = /^[a-z]+/.exec(name)?.[0] ?? "";
  const word = INITIALISMS.has(first) ? first.toUpperCase() : `${first.slice(0, 1).toUpperCase()}${first.slice(1)}`;
  return `${WORDS[first] ?? word}${name.slice(first.length)}`;
}
