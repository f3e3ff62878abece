/**
 * JSON Patch (RFC 6902) as Kubernetes applies it. Its library forgives four things that the standard does not, and
 * clients rely on them: `replace` of a member that is not there adds it, a missing `value` is null, `test` for null
 * holds for a member that is not there, and negative positions count from a list's end.
 */
import { applyPatch, type Operation, Pointer } from "rfc6902";
import { StatusError } from "./status.ts";

/** Operations one request may carry, as in Kubernetes. */
const OPERATIONS_MAX = 10_000;

/** What all copies of one request may add, as JSON, as in Kubernetes: each could double what there is. */
const COPIED_MAX = 3 * 2 ** 20;

/** Changes `document`, which must be the caller's own, and returns the result. Throws a `StatusError` 413 or 422. */
export function applyJsonPatch(document: unknown, operations: readonly Operation[]): unknown {
  if (operations.length > OPERATIONS_MAX) {
    const message = `The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`;
    throw new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${message}`);
  }
  // A root of our own, so that the whole document may be replaced as well.
  const holder = { root: document };
  let copied = 0;
  for (const operation of operations) {
    const strict = normalizeOperation(holder, operation);
    if (strict?.op === "copy") copied += jsonLength(parsePointer(strict.from)?.get(holder), COPIED_MAX - copied);
    if (copied > COPIED_MAX) throw invalidPatch();
    if (strict !== undefined && applyPatch(holder, [strict])[0] !== null) throw invalidPatch();
  }
  return holder.root;
}

/** About as many characters as the value has as JSON; stops counting once they are more than `most`. */
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

function invalidPatch(): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return new StatusError(422, "Invalid", message, { details: {} });
}

/** The operation in the standard's own terms; undefined when there is nothing to do. */
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

/** A JSON pointer that does not lead through what every object inherits: the library takes such steps for none. */
function isSafePointer(path: unknown): path is string {
  if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) return false;
  return !/\/(__proto__(\/|$)|(constructor|prototype)\/)/.test(path);
}

/** The path below the holder, its last step turned into a position from the front. */
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
