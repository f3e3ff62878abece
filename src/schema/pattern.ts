/** Regular expressions of RE2, as Go has them: no look-around, no back-references, time linear in the text. */
import { RE2JS } from "re2js";

export interface Pattern {
  /** Whether the expression is found anywhere in the text. */
  test(text: string): boolean;
}

export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** Throws a `PatternError` in Go's words: ``error parsing regexp: missing closing ): `(` ``. */
export function compilePattern(source: string): Pattern {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    throw new PatternError((error as Error).message, { cause: error });
  }
}
