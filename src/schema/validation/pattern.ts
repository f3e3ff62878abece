/** Regular expressions of RE2, as Go has them: no look-around, no back-references, time linear in the text. */
import { RE2JS } from "re2js";
import { patternSize } from "./pattern-size.ts";

export interface Pattern {
  /** Whether the expression is found anywhere in the text; never in one that is too long for it. */
  test(text: string): boolean;
}

export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** Instructions. Go takes more, which costs seconds to compile and as much for each text. */
const SIZE_MAX = 50_000;
/** Instructions times characters, at most some seconds: linear in the text is too much where both are large. */
const MATCH_COST_MAX = 200_000_000;

/** Throws a `PatternError` in Go's words: ``error parsing regexp: missing closing ): `(` ``. */
export function compilePattern(source: string): Pattern {
  const compiled = compileExpression(source);
  return { test: (text) => matchCost(compiled, text.length) <= 1 && compiled.test(text) };
}

/** For those who look for more than whether; they heed `workOf`. Throws as `compilePattern` does. */
export function compileExpression(source: string): RE2JS {
  if (patternSize(source) > SIZE_MAX) throw new PatternError("error parsing regexp: expression too large");
  try {
    return RE2JS.compile(source);
  } catch (error) {
    throw new PatternError((error as Error).message, { cause: error });
  }
}

/** Which part of what is bearable it may take to go through so many characters. */
export function matchCost(expression: RE2JS, characters: number): number {
  return (expression.programSize() * characters) / MATCH_COST_MAX;
}
