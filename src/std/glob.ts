/**
 * Shell patterns as in klog's `--vmodule` and Go's `path.Match`: `*` any run of characters, `?` any one character,
 * `[a-c]` and `[^a-c]` sets, `\\x` the character itself.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  return matches(pattern, 0, text, 0);
}

/** Throws a SyntaxError for a malformed pattern. */
export function validateGlob(pattern: string): void {
  let i = 0;
  while (i < pattern.length) {
    const token = parseToken(pattern, i);
    if (token === undefined) throw new SyntaxError(`Cannot parse pattern "${pattern}": "[" or "\\" is not closed`);
    i = token.end;
  }
}

interface Token {
  readonly end: number;
  readonly accepts: "run" | ((character: string) => boolean);
}

function matches(pattern: string, p: number, text: string, t: number): boolean {
  // Position after the latest `*`, and where in the text it may be tried again: linear in the text for each star.
  let star = -1;
  let retry = -1;
  while (t < text.length || p < pattern.length) {
    const token = p < pattern.length ? parseToken(pattern, p) : undefined;
    if (token?.accepts === "run") {
      star = token.end;
      retry = t;
      p = star;
    } else if (token !== undefined && t < text.length && (token.accepts as (c: string) => boolean)(text[t]!)) {
      p = token.end;
      t++;
    } else if (star >= 0 && retry < text.length) {
      retry++;
      p = star;
      t = retry;
    } else {
      return false;
    }
  }
  return true;
}

function parseToken(pattern: string, index: number): Token | undefined {
  const character = pattern[index];
  if (character === "*") return { end: index + 1, accepts: "run" };
  if (character === "?") return { end: index + 1, accepts: () => true };
  if (character === "[") return parseSet(pattern, index);
  if (character === "\\") {
    const literal = pattern[index + 1];
    return literal === undefined ? undefined : { end: index + 2, accepts: (c) => c === literal };
  }
  return { end: index + 1, accepts: (c) => c === character };
}

function parseSet(pattern: string, index: number): Token | undefined {
  const negated = pattern[index + 1] === "^";
  const ranges: [string, string][] = [];
  let i = index + (negated ? 2 : 1);
  while (i < pattern.length && (pattern[i] !== "]" || ranges.length === 0)) {
    if (pattern[i] === "\\") i++;
    const low = pattern[i];
    if (low === undefined) return undefined;
    if (pattern[i + 1] === "-" && pattern[i + 2] !== "]" && pattern[i + 2] !== undefined) {
      ranges.push([low, pattern[i + 2]!]);
      i += 3;
    } else {
      ranges.push([low, low]);
      i++;
    }
  }
  if (i >= pattern.length) return undefined;
  return { end: i + 1, accepts: (c) => ranges.some(([low, high]) => low <= c && c <= high) !== negated };
}
