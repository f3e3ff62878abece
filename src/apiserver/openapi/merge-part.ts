/** Merges OpenAPI v2 documents of extension servers into that of this server. */
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { isPlainObject, setMember } from "../../schema/value/plain-object.ts";
import type { Steps } from "../../std/async/steps.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** The paths of a group version, and the definitions that they reference. */
export interface OpenApiPart {
  readonly paths: JsonObject;
  readonly definitions: JsonObject;
}

export const DEFINITION = "#/definitions/";
const GROUP_VERSION_KIND = "x-kubernetes-group-version-kind";

/**
 * Adds the part to a document. Paths that the document has stay; a definition of another content under the same name
 * is renamed to `NAME_v2`.
 */
export function* mergePart(into: { paths: JsonObject; definitions: JsonObject }, part: OpenApiPart): Steps<void> {
  const renamed = new Map<string, string>();
  for (const [name, definition] of Object.entries(part.definitions)) {
    const free = findName(into.definitions, part.definitions, name, definition);
    if (free !== name) renamed.set(name, free);
    yield;
  }
  const rename = (value: unknown): unknown => (renamed.size === 0 ? value : renameReferences(value, renamed));
  const added: Record<string, unknown> = {};
  for (const [name, definition] of Object.entries(part.definitions)) {
    const key = renamed.get(name) ?? name;
    const existing = Object.hasOwn(into.definitions, key) ? into.definitions[key] : undefined;
    setMember(added, key, existing === undefined ? rename(definition) : withKindsOf(existing, definition));
    yield;
  }
  into.definitions = { ...into.definitions, ...added };
  yield;
  const paths: Record<string, unknown> = {};
  for (const [name, path] of Object.entries(part.paths)) {
    setMember(paths, name, rename(path));
    yield;
  }
  into.paths = { ...paths, ...into.paths };
  yield;
}

/** The name itself when no other definition has it. */
function findName(existing: JsonObject, own: JsonObject, name: string, definition: unknown): string {
  for (let number = 1; ; number++) {
    const key = number === 1 ? name : `${name}_v${number}`;
    if (number > 1 && Object.hasOwn(own, key)) continue;
    if (!Object.hasOwn(existing, key) || isSameDefinition(existing[key], definition)) return key;
  }
}

function isSameDefinition(a: unknown, b: unknown): boolean {
  return deepEqual(withoutKinds(a), withoutKinds(b));
}

function withoutKinds(definition: unknown): unknown {
  if (!isPlainObject(definition)) return definition;
  const { [GROUP_VERSION_KIND]: _, ...rest } = definition;
  return rest;
}

function withKindsOf(existing: unknown, other: unknown): unknown {
  if (!isPlainObject(existing) || !isPlainObject(other)) return existing;
  const [own, more] = [existing[GROUP_VERSION_KIND], other[GROUP_VERSION_KIND]];
  if (!Array.isArray(more) || more.length === 0) return existing;
  const kinds: readonly unknown[] = Array.isArray(own) ? own : [];
  const known = new Set(kinds.map(canonicalJson));
  const added = more.filter((kind) => !known.has(canonicalJson(kind)));
  return added.length === 0 ? existing : { ...existing, [GROUP_VERSION_KIND]: [...kinds, ...added] };
}

function renameReferences(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  return mapReferences(value, (reference) => {
    const name = renamed.get(reference.slice(DEFINITION.length));
    return name === undefined || !reference.startsWith(DEFINITION) ? reference : DEFINITION + name;
  });
}

/** A copy of the value with other references. */
export function mapReferences(value: unknown, map: (reference: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => mapReferences(item, map));
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === "$ref" && typeof member === "string" ? map(member) : mapReferences(member, map),
    ]),
  );
}
