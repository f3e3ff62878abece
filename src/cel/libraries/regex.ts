/** Regular expressions with the semantics of RE2: time linear in the text, whatever the pattern. */
import { RE2JS } from "re2js";
import { functionOf, type Library, method, overload } from "../functions.ts";
import { boolType, intType, listType, stringType } from "../types.ts";
import { ArrayList, fail } from "../value.ts";

const PATTERNS_MAX = 512;
const patterns = new Map<string, RE2JS>();

/** Compiled once; the oldest is forgotten first. Fails when it is no pattern. */
export function pattern(text: string): RE2JS {
  let compiled = patterns.get(text);
  if (compiled !== undefined) return compiled;
  try {
    compiled = RE2JS.compile(text);
  } catch (error) {
    return fail(`error parsing regexp: ${(error as Error).message.replace(/^error parsing regexp: /, "")}`);
  }
  if (patterns.size >= PATTERNS_MAX) patterns.delete(patterns.keys().next().value!);
  patterns.set(text, compiled);
  return compiled;
}

function matches(text: string, regex: string): boolean {
  return pattern(regex).matcher(text).find();
}

function find(text: string, regex: string): string {
  const matcher = pattern(regex).matcher(text);
  return matcher.find() ? (matcher.group() ?? "") : "";
}

function findAll(text: string, regex: string, limit = -1n): ArrayList {
  const found: string[] = [];
  const matcher = pattern(regex).matcher(text);
  while ((limit < 0n || found.length < limit) && matcher.find()) found.push(matcher.group() ?? "");
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
