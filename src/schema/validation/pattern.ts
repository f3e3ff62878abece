/** RE2 regular expressions, as in Go: no look-around, no back-references, linear time. */
import { RE2JS } from "re2js";
import { patternSize } from "./pattern-size.ts";

export interface Pattern {
  /** Whether the expression matches anywhere in the text; false when matching would cost too much. */
  test(text: string): boolean;
}

export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** In instructions. Go allows more, at the price of seconds for compilation and for each match. */
const SIZE_MAX = 50_000;
/**
 * In instructions times characters, of which each takes up to 20 ns where the automaton of a pattern has many states.
 * Admits every text of an object, up to 1.5 MiB, for patterns such as `^[a-z]*$`.
 */
const MATCH_COST_MAX = 10_000_000;

/** Throws a `PatternError` with Go's message: ``error parsing regexp: missing closing ): `(` ``. */
export function compilePattern(source: string): Pattern {
  const compiled = compileExpression(source);
  return { test: (text) => matchCost(compiled, text.length) <= 1 && compiled.test(text) };
}

/** Expressions in use by their source: schemas repeat patterns, and compilation is slow. */
const compiledExpressions = new Map<string, WeakRef<RE2JS>>();
const unusedExpressions = new FinalizationRegistry<string>((source) => {
  if (compiledExpressions.get(source)?.deref() === undefined) compiledExpressions.delete(source);
});

/** For callers that need more than `test`; they must check `matchCost`. Throws as `compilePattern` does. */
export function compileExpression(source: string): RE2JS {
  const known = compiledExpressions.get(source)?.deref();
  if (known !== undefined) return known;
  if (patternSize(source) > SIZE_MAX) throw new PatternError("error parsing regexp: expression too large");
  try {
    const compiled = RE2JS.compile(source);
    compiledExpressions.set(source, new WeakRef(compiled));
    unusedExpressions.register(compiled, source);
    return compiled;
  } catch (error) {
    throw new PatternError((error as Error).message, { cause: error });
  }
}

/** The cost of matching this many characters, as a fraction of the maximum. */
export function matchCost(expression: RE2JS, characters: number): number {
  return (expression.programSize() * characters) / MATCH_COST_MAX;
}
