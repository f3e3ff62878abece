import { NumberLiteral } from "../value/number-literal.ts";
import { sortedNames } from "../value/plain-object.ts";
import { stringifyExact } from "./exact-numbers.ts";
import { escapeHtml } from "./html-escape.ts";

/** JSON with the members of every object in alphabetical order: equal values give equal text. */
export function canonicalJson(value: unknown): string {
  // What is escaped occurs in strings only, and one pass over the text takes less time than one for each of them.
  return escapeHtml(writeSorted(value));
}

function writeSorted(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null || value instanceof NumberLiteral) return stringifyExact(value);
  if (Array.isArray(value)) return `[${value.map(writeSorted).join(",")}]`;
  const members = value as Readonly<Record<string, unknown>>;
  let text = "";
  for (const name of sortedNames(members)) {
    const member = members[name];
    if (member !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${writeSorted(member)}`;
  }
  return `{${text}}`;
}
