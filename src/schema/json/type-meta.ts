/** Reads apiVersion and kind of a JSON value, with the messages of Go. */
import { isPlainObject } from "../value/plain-object.ts";

const TYPE_META_STRUCT =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Member names are case-insensitive; absent members are empty. Throws a `SyntaxError` for values of another type.
 */
export function readTypeMeta(value: unknown): { readonly kind: string; readonly apiVersion: string } {
  const found = { kind: "", apiVersion: "" };
  const throwWrongType = (what: unknown, where: string): never => {
    throw new SyntaxError(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${goType(what)} into Go ${where}`,
    );
  };
  if (value === null || value === undefined) return found;
  if (!isPlainObject(value)) return throwWrongType(value, `value of type ${TYPE_META_STRUCT}`);
  for (const name of Object.keys(value)) {
    const lower = name.toLowerCase();
    const member = lower === "kind" ? "kind" : lower === "apiversion" ? "apiVersion" : undefined;
    const text = value[name];
    if (member === undefined || text === null) continue;
    if (typeof text !== "string") return throwWrongType(text, `struct field .${member} of type string`);
    found[member] = text;
  }
  return found;
}

/** The Go name of a JSON value's type. */
export function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}
