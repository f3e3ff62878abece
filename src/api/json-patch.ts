/**
 * JSON Patch (RFC 6902) with the rules of Kubernetes' library, on which clients rely, where they differ from the
 * standard:
 *
 * - A path is split at slashes and its first part is ignored: `data/b` names the member `b` of the document.
 * - Only `replace` and `test` accept the whole document; `replace` ignores a value that is no object and no list.
 * - `replace` adds a missing member, `copy` of a missing member and operations without `value` write null, and `test`
 *   for null accepts a missing member.
 * - Indexes are numbers as Go parses them: `01` is 1, and negative ones count from the end of the list.
 * - `test` compares numbers as they are written: 1.0 is not 1.
 */
import { deepEqual } from "../schema/value/equal.ts";
import { goQuote } from "../schema/value/go-quote.ts";
import { isPlainObject, setMember } from "../schema/value/plain-object.ts";
import { StatusError } from "./status.ts";

/** An operation as it was sent: its members can be missing or of any type. */
export interface JsonPatchOperation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: unknown;
}

/** An operation does not apply. The message is that of Kubernetes' library. */
export class JsonPatchError extends Error {}

/** A `test` operation found another value. */
export class JsonPatchTestError extends JsonPatchError {}

/** The maximum number of operations in a patch, as in Kubernetes. */
const OPERATIONS_MAX = 10_000;

/**
 * The maximum size of all copied values together, in characters of JSON, as in Kubernetes: each copy can double the
 * document.
 */
const COPIED_MAX = 3 * 2 ** 20;

/** The maximum number of list items that all operations together move, since each can move a whole list. */
const MOVED_MAX = 2 ** 25;

/** Modifies `document` in place and returns the result. Throws a `JsonPatchError`, or a `StatusError` 413. */
export function applyJsonPatch(document: unknown, operations: readonly JsonPatchOperation[]): unknown {
  if (operations.length > OPERATIONS_MAX) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`);
  }
  const patch = new PatchedDocument(document);
  for (const operation of operations) patch.apply(operation);
  return patch.root;
}

type Container = unknown[] | Record<string, unknown>;

interface Location {
  readonly container: Container;
  /** A member's name, or an index. */
  readonly key: string;
  /** The start of error messages. */
  readonly context: string;
}

class PatchedDocument {
  root: unknown;
  #copied = 0;
  #moved = 0;

  constructor(root: unknown) {
    this.root = root;
  }

  apply(operation: JsonPatchOperation): void {
    const op = textMember(operation, "op");
    switch (op) {
      case "add":
        return void this.#insert(this.#locate("add", "path", pathOf(operation, op)), newValue(operation));
      case "remove":
        return void this.#remove(this.#locate("remove", "path", pathOf(operation, op)));
      case "replace":
        return void this.#replace(operation);
      case "move":
        return void this.#move(operation);
      case "copy":
        return void this.#copy(operation);
      case "test":
        return void this.#test(operation);
      default:
        throw new JsonPatchError(`Unexpected kind: ${op ?? "unknown"}`);
    }
  }

  #replace(operation: JsonPatchOperation): void {
    const path = pathOf(operation, "replace");
    if (path === "") {
      const value = newValue(operation);
      if (typeof value === "object" && value !== null) this.root = value;
      return;
    }
    const { container, key } = this.#locate("replace", "path", path);
    if (!Array.isArray(container)) return void setMember(container, key, newValue(operation));
    const index = itemIndex(container, key);
    if (index === undefined) {
      throw new JsonPatchError(`replace operation does not apply: doc is missing key: ${path}: missing value`);
    }
    container[index] = newValue(operation);
  }

  #move(operation: JsonPatchOperation): void {
    const value = this.#remove(this.#locate("move", "from path", fromOf(operation, "move")));
    this.#insert(this.#locate("move", "destination path", pathOf(operation, "move")), value);
  }

  #copy(operation: JsonPatchOperation): void {
    const value = valueAt(this.#locate("copy", "from path", fromOf(operation, "copy")));
    const destination = this.#locate("copy", "destination path", pathOf(operation, "copy"));
    this.#copied += jsonLength(value, COPIED_MAX - this.#copied);
    if (this.#copied > COPIED_MAX) {
      throw new JsonPatchError(`Unable to complete the copy, the accumulated size increase of copy is ${this.#copied}`);
    }
    this.#insert(destination, copyOf(value) ?? null);
  }

  #test(operation: JsonPatchOperation): void {
    const path = pathOf(operation, "test");
    const value = path === "" ? this.root : (valueAt(this.#locate("test", "path", path)) ?? null);
    if (!deepEqual(value, operation.value ?? null)) {
      throw new JsonPatchTestError(`testing value ${path} failed: test failed`);
    }
  }

  /** Finds the object or list that contains the last part of the path. */
  #locate(op: string, what: string, path: string): Location {
    const parts = path.split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    let found: unknown = parts.length < 2 ? undefined : this.root;
    for (const part of parts.slice(1, -1)) found = isContainer(found) ? itemOf(found, part) : undefined;
    const key = parts.at(-1) ?? "";
    const isSource = what === "from path";
    // The library names the last element only of what is moved.
    const named = op === "move" && isSource ? key : path;
    const context = `error in ${op} for ${op === "copy" && isSource ? "from" : "path"}: '${named}'`;
    if (isContainer(found)) return { container: found, key, context };
    const shown = op === "add" || op === "remove" ? goQuote(path) : path;
    throw new JsonPatchError(`${op} operation does not apply: doc is missing ${what}: ${shown}: missing value`);
  }

  #insert({ container, key, context }: Location, value: unknown): void {
    if (!Array.isArray(container)) return void setMember(container, key, value);
    const index = key === "-" ? container.length : parseIndex(key, container.length + 1);
    if (index === undefined || index > container.length) throw invalidIndex(key, context);
    this.#moveItems(container.length - index);
    container.splice(index, 0, value);
  }

  #remove({ container, key, context }: Location): unknown {
    if (!Array.isArray(container)) {
      if (!Object.hasOwn(container, key)) {
        throw new JsonPatchError(`${context}: Unable to remove nonexistent key: ${key}: missing value`);
      }
      const value = container[key];
      delete container[key];
      return value;
    }
    const index = itemIndex(container, key);
    if (index === undefined) throw invalidIndex(key, context);
    this.#moveItems(container.length - index);
    return container.splice(index, 1)[0];
  }

  #moveItems(count: number): void {
    this.#moved += count;
    if (this.#moved > MOVED_MAX) throw tooLarge("The patch changes long lists too often");
  }
}

function isContainer(value: unknown): value is Container {
  return Array.isArray(value) || isPlainObject(value);
}

function itemOf(container: Container, key: string): unknown {
  if (!Array.isArray(container)) return Object.hasOwn(container, key) ? container[key] : undefined;
  const index = itemIndex(container, key);
  return index === undefined ? undefined : container[index];
}

/** Undefined for a missing member. Throws when a list has no item at the index. */
function valueAt({ container, key, context }: Location): unknown {
  if (Array.isArray(container) && itemIndex(container, key) === undefined) throw invalidIndex(key, context);
  return itemOf(container, key);
}

function itemIndex(list: readonly unknown[], key: string): number | undefined {
  const index = parseIndex(key, list.length);
  return index !== undefined && index < list.length ? index : undefined;
}

/** Parses an index as Go's `strconv.Atoi` does; a negative one counts from `length`. */
function parseIndex(key: string, length: number): number | undefined {
  if (!/^[+-]?\d+$/.test(key)) return undefined;
  const index = Number(key);
  if (index >= 0) return index;
  return index < -length ? undefined : index + length;
}

function invalidIndex(key: string, context: string): JsonPatchError {
  return new JsonPatchError(`${context}: Unable to access invalid index: ${key}: invalid index referenced`);
}

/** A copy, since the operation can be applied again, to a newer object. */
function newValue({ value = null }: JsonPatchOperation): unknown {
  return copyOf(value);
}

/** Shares scalars, among them `NumberLiteral`s. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlainObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) setMember(copy, name, copyOf(value[name]));
  return copy;
}

function pathOf(operation: JsonPatchOperation, op: string): string {
  return textMember(operation, "path") ?? missingMember(op, "path");
}

function fromOf(operation: JsonPatchOperation, op: string): string {
  return textMember(operation, "from") ?? missingMember(op, "from");
}

function textMember(operation: JsonPatchOperation, name: "op" | "path" | "from"): string | undefined {
  const value = operation[name];
  return typeof value === "string" ? value : undefined;
}

function missingMember(op: string, name: string): never {
  const why = op === "add" ? "" : `: operation missing ${name} field`;
  throw new JsonPatchError(`${op} operation failed to decode ${name}${why}: missing value`);
}

/** Estimates the length of the value as JSON; stops counting beyond `most`. */
function jsonLength(value: unknown, most: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let length = 2;
  for (const [key, member] of Object.entries(value)) {
    length += (Array.isArray(value) ? 1 : key.length + 4) + jsonLength(member, most - length);
    if (length > most) break;
  }
  return length;
}

function tooLarge(message: string): StatusError {
  return new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${message}`);
}
