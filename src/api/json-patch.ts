/**
 * JSON Patch (RFC 6902) with the leniency of Kubernetes' library, on which clients rely: `replace` adds a missing
 * member, a missing `value` is null, `test` for null accepts a missing member, and negative indexes count from the end
 * of a list.
 */
import { applyPatch, type Operation, Pointer } from "rfc6902";
import { deepEqual } from "../schema/value/equal.ts";
import { StatusError } from "./status.ts";

/** The maximum number of operations in a patch, as in Kubernetes. */
const OPERATIONS_MAX = 10_000;

/**
 * The maximum size of all copied values together, in characters of JSON, as in Kubernetes: each copy can double the
 * document.
 */
const COPIED_MAX = 3 * 2 ** 20;

/** The maximum number of list items that all operations together move, since each can move a whole list. */
const MOVED_MAX = 2 ** 25;

/** Modifies `document` in place and returns the result. Throws a `StatusError` 413 or 422. */
export function applyJsonPatch(document: unknown, operations: readonly Operation[]): unknown {
  if (operations.length > OPERATIONS_MAX) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`);
  }
  // A parent object, so that an operation can replace the root.
  const holder = { root: document };
  let copied = 0;
  let moved = 0;
  for (const operation of operations) {
    const strict = normalizeOperation(holder, operation);
    if (strict?.op === "copy") copied += jsonLength(parsePointer(strict.from)?.get(holder), COPIED_MAX - copied);
    if (copied > COPIED_MAX) throw invalidPatch();
    moved += itemsAfter(holder, strict?.path) + itemsAfter(holder, strict?.op === "move" ? strict.from : undefined);
    if (moved > MOVED_MAX) throw tooLarge("The patch changes long lists too often");
    if (strict !== undefined && !applyOperation(holder, strict)) throw invalidPatch();
  }
  return holder.root;
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

/** The number of items that follow in the list that contains the value at this path. */
function itemsAfter(holder: object, path = ""): number {
  const { parent, key } = parsePointer(path)?.evaluate(holder) ?? {};
  return Array.isArray(parent) && key !== "-" ? Math.max(0, parent.length - Number(key)) || 0 : 0;
}

/** Whether the operation succeeds. */
function applyOperation(holder: object, operation: Operation): boolean {
  // The library computes the difference of the two values, which takes quadratic time for lists.
  if (operation.op === "test") {
    return deepEqual(parsePointer(operation.path)?.evaluate(holder).value, operation.value);
  }
  return applyPatch(holder, [operation])[0] === null;
}

function tooLarge(message: string): StatusError {
  return new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${message}`);
}

function invalidPatch(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return new StatusError(422, "Invalid", message, { details: {} });
}

/** Converts a lenient operation to a standard one; undefined when it has no effect. */
function normalizeOperation(holder: object, operation: Operation): Operation | undefined {
  if (!isSafePointer(operation.path)) throw invalidPatch();
  const path = resolvePath(holder, operation.path, operation.op === "add");
  switch (operation.op) {
    case "add":
      return { op: "add", path, value: operation.value ?? null };
    case "replace":
      return { op: isNewMember(holder, path) ? "add" : "replace", path, value: operation.value ?? null };
    case "test": {
      const value = operation.value ?? null;
      return value === null && isNewMember(holder, path) ? undefined : { op: "test", path, value };
    }
    case "move":
    case "copy":
      if (!isSafePointer(operation.from)) throw invalidPatch();
      return { ...operation, path, from: resolvePath(holder, operation.from, false) };
    default:
      return { ...operation, path };
  }
}

/** Whether the JSON pointer avoids inherited properties (`__proto__`, `constructor`): the library would follow them. */
function isSafePointer(path: unknown): path is string {
  if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) return false;
  return !/\/(__proto__(\/|$)|(constructor|prototype)\/)/.test(path);
}

/** The path below `root`, with a negative index converted to one from the start. */
function resolvePath(holder: object, path: string, inserting: boolean): string {
  const rooted = `/root${path}`;
  const match = /^(.*)\/-([1-9]\d*)$/.exec(path);
  if (match === null) return rooted;
  const list: unknown = parsePointer(`/root${match[1]}`)?.get(holder);
  if (!Array.isArray(list)) return rooted;
  const at = list.length + (inserting ? 1 : 0) - Number(match[2]);
  return at < 0 ? rooted : `/root${match[1]}/${at}`;
}

function isNewMember(holder: object, path: string): boolean {
  const { parent, key } = parsePointer(path)?.evaluate(holder) ?? {};
  return typeof parent === "object" && parent !== null && !Array.isArray(parent) && !Object.hasOwn(parent, key ?? "");
}

function parsePointer(path: string): Pointer | undefined {
  try {
    return Pointer.fromJSON(path);
  } catch {
    return undefined;
  }
}
