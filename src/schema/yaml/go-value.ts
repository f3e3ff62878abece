import { goQuote } from "../value/go-quote.ts";
import { isPlainObject } from "../value/plain-object.ts";

/** A value of a YAML document as Go's `%#v` shows it. */
export function formatGoValue(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (value === null || value === undefined) return "interface {}(nil)";
  if (Array.isArray(value)) return `[]interface {}{${value.map(formatGoValue).join(", ")}}`;
  if (!isPlainObject(value)) return String(value);
  const members = Object.keys(value)
    .sort()
    .map((name) => `${goQuote(name)}:${formatGoValue(value[name])}`);
  return `map[interface {}]interface {}{${members.join(", ")}}`;
}
