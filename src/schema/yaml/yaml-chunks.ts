/** `encodeYaml` of a large value in parts, between which other requests are handled; joined, they are the same text. */
import { countValues } from "../value/check-values.ts";
import { compareKeys, encodeYaml } from "./write-yaml.ts";

/** Values that are encoded at once: about a millisecond. */
const VALUES_AT_ONCE = 500;

/** The value is an object with members, or a list with items. An empty chunk only ends a step. */
export function* yamlChunks(value: object, depth = 0): Generator<string> {
  yield* Array.isArray(value) ? listChunks(value, depth) : objectChunks(value as Members, depth);
}

type Members = Readonly<Record<string, unknown>>;

function* objectChunks(members: Members, depth: number): Generator<string> {
  let group: Record<string, unknown> = {};
  let size = 0;
  const names = Object.keys(members);
  // Sorting tens of thousands takes many milliseconds.
  const isLong = names.length > VALUES_AT_ONCE;
  if (isLong) yield "";
  names.sort(compareKeys);
  if (isLong) yield "";
  for (const name of names) {
    const member = members[name];
    const values = countValues(member, VALUES_AT_ONCE);
    const isNested = values > VALUES_AT_ONCE && isContainer(member);
    const key = isNested ? keyText(name) : undefined;
    if (size > 0 && (key !== undefined || size + values > VALUES_AT_ONCE)) {
      yield encodeYaml(group, { indent: 2 * depth });
      group = {};
      size = 0;
    }
    if (key === undefined) {
      Object.defineProperty(group, name, { value: member, enumerable: true, configurable: true, writable: true });
      size += values;
    } else {
      yield `${"  ".repeat(depth)}${key}:\n`;
      // Items of a list have the indentation of its key.
      if (Array.isArray(member)) yield* listChunks(member, depth);
      else yield* objectChunks(member as Members, depth + 1);
    }
  }
  if (size > 0) yield encodeYaml(group, { indent: 2 * depth });
}

function* listChunks(items: readonly unknown[], depth: number): Generator<string> {
  let group: unknown[] = [];
  let size = 0;
  for (const item of items) {
    const values = countValues(item, VALUES_AT_ONCE);
    const isNested = values > VALUES_AT_ONCE && isContainer(item);
    if (size > 0 && (isNested || size + values > VALUES_AT_ONCE)) {
      yield encodeYaml(group, { indent: 2 * depth });
      group = [];
      size = 0;
    }
    if (isNested) yield* itemChunks(item, depth);
    else {
      group.push(item);
      size += values;
    }
  }
  if (size > 0) yield encodeYaml(group, { indent: 2 * depth });
}

/** An item is indented by the width of the dash before its first line. */
function* itemChunks(item: object, depth: number): Generator<string> {
  let dash = "- ";
  for (const text of yamlChunks(item, depth + 1)) {
    if (text === "") {
      yield text;
      continue;
    }
    const start = 2 * depth;
    yield `${text.slice(0, start)}${dash}${text.slice(start + 2)}`;
    dash = "  ";
  }
}

/** Undefined for a key that is written before a question mark, since it is long. */
function keyText(name: string): string | undefined {
  const text = encodeYaml({ [name]: 0 });
  return text.startsWith("? ") ? undefined : text.slice(0, -": 0\n".length);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
