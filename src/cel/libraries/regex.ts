/** RE2 regular expressions, which match in linear time. */
import type { RE2JS } from "re2js";
import { compileExpression, matchCost } from "../../schema/validation/pattern.ts";
import { functionOf, type Library, method, overload } from "../functions.ts";
import { boolType, intType, listType, stringType } from "../values/types.ts";
import { ArrayList, fail } from "../values/value.ts";

const PATTERNS_MAX = 512;
/** The maximum cost of all searches in one text, as a multiple of the limit per search. */
const SEARCHES_MAX = 2;
const patterns = new Map<string, RE2JS>();

/** Compiles with a cache that evicts the oldest. Fails for an invalid pattern. */
export function compileCached(text: string): RE2JS {
  let compiled = patterns.get(text);
  if (compiled !== undefined) return compiled;
  try {
    compiled = compileExpression(text);
  } catch (error) {
    return fail(`error parsing regexp: ${(error as Error).message.replace(/^error parsing regexp: /, "")}`);
  }
  if (patterns.size >= PATTERNS_MAX) patterns.delete(patterns.keys().next().value!);
  patterns.set(text, compiled);
  return compiled;
}

/** Fails when matching would cost too much. */
function compiledFor(text: string, regex: string): RE2JS {
  const compiled = compileCached(regex);
  return matchCost(compiled, text.length) > 1 ? failTooLong() : compiled;
}

function failTooLong(): never {
  return fail("the text is too long for the regular expression");
}

function matches(text: string, regex: string): boolean {
  // Without groups to find it takes a fraction of the time.
  return compiledFor(text, regex).test(text);
}

function find(text: string, regex: string): string {
  const matcher = compiledFor(text, regex).matcher(text);
  return matcher.find() ? (matcher.group() ?? "") : "";
}

function findAll(text: string, regex: string, limit = -1n): ArrayList {
  const found: string[] = [];
  const compiled = compiledFor(text, regex);
  const matcher = compiled.matcher(text);
  // Each search can read to the end of the text.
  let work = 0;
  for (let at = 0; (limit < 0n || found.length < limit) && matcher.find(); at = matcher.end()) {
    work += matchCost(compiled, text.length - at);
    if (work > SEARCHES_MAX) return failTooLong();
    found.push(matcher.group() ?? "");
  }
  return new ArrayList(found);
}

const two = [stringType, stringType];

export const regex: Library = {
  functions: [
    functionOf(
      "matches",
      overload("matches", two, boolType, matches),
      method("matches_string", two, boolType, matches),
    ),
    functionOf("find", method("string_find_string", two, stringType, find)),
    functionOf(
      "findAll",
      method("string_find_all_string", two, listType(stringType), (text: string, re: string) => findAll(text, re)),
      method("string_find_all_string_int", [...two, intType], listType(stringType), findAll),
    ),
  ],
};
