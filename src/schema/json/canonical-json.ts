import { NumberLiteral } from "../value/number-literal.ts";
import { stringifyExact } from "./exact-numbers.ts";
import { escapeHtml } from "./html-escape.ts";

/** JSON with the members of every object in alphabetical order: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value === "string") return escapeHtml(JSON.stringify(value));
  if (typeof value !== "object" || value === null || value instanceof NumberLiteral) return stringifyExact(value);
  const members = value as Readonly<Record<string, unknown>>;
  const written = Object.keys(members)
    .sort()
    .filter((name) => members[name] !== undefined)
    .map((name) => `${escapeHtml(JSON.stringify(name))}:${canonicalJson(members[name])}`);
  return `{${written.join(",")}}`;
}
