/**
 * An upper bound of the values in a YAML text, found without parsing it: parsing takes far longer, and cannot be
 * interrupted. Each value follows the start of a line, `- `, `? ` or, in a flow collection, `[`, `{`, `,` or `:`. The
 * lines of block scalars contain no values; they are recognized where no line outside of them leaves a quote or bracket
 * open.
 */

/** `  - key: |`: indentation with dashes, and the key or the last dash. Other syntax cannot look the same. */
const BLOCK_HEADER = /^( *(?:- +)*)([\w./][\w./-]*:|-) +[|>][-+]?[ \r]*$/;
const COMMENT = /^ *#/;
const QUOTE_OR_BRACKET = /["'[\]{}]/;
const BRACKET = /[[{]/;
/** A key at the beginning of the line, or after dashes. */
const KEY = /^ *(?:- +)*[^\s:?-][^:]*:(?:\s|$)/;
const DASHES = /^[ -]*$/;
/** Characters; a quote after more dashes is taken for one in a plain text. */
const DASHES_MAX = 100;
/** In a line with quotes or brackets: comments, tags and anchors could contain some that do not count. */
const HIDING = /[#!&*|>\t]/;
const ITEM = /[-?:](?=\s|$)/g;
const INDICATOR = /[\r\n\-,:?[{]/g;
/** Characters that are searched at once. */
const CHUNK = 4096;
const SPACE = 0x20;

/** Returns a number greater than `max` when there may be more than `max` values. */
export function countYamlValues(text: string, max: number): number {
  // A single carriage return ends a line, too.
  const count = /\r(?!\n)/.test(text) ? undefined : countOutsideBlocks(text, max);
  return count ?? countIndicators(text, max);
}

/** Undefined when a line may leave a quote or bracket open. */
function countOutsideBlocks(text: string, max: number): number | undefined {
  let count = 1;
  /** The indentation that all lines of the current block scalar exceed. */
  let outside = Number.POSITIVE_INFINITY;
  for (let start = 0, end = 0; start < text.length && count <= max; start = end + 1) {
    end = text.indexOf("\n", start);
    if (end < 0) end = text.length;
    let first = start;
    while (first < end && text.charCodeAt(first) === SPACE) first++;
    if (first === end || first - start > outside) continue;
    outside = Number.POSITIVE_INFINITY;
    const line = text.slice(start, end);
    if (COMMENT.test(line)) continue;
    if (QUOTE_OR_BRACKET.test(line)) {
      const bare = withoutQuoted(line);
      if (bare === undefined) return undefined;
      count += BRACKET.test(bare) ? 1 + countIndicators(bare, max) : 1 + countItems(bare, max);
      continue;
    }
    count += 1 + countItems(line, max);
    // The expression takes memory for each dash.
    if (count > max) break;
    const [, prefix = "", key] = BLOCK_HEADER.exec(line) ?? [];
    if (key !== undefined) outside = prefix.length;
  }
  return count;
}

/** The line without its quoted texts; undefined when it may leave a quote or bracket open. */
function withoutQuoted(line: string): string | undefined {
  if (HIDING.test(line)) return undefined;
  let open = 0;
  let bare = "";
  let from = 0;
  for (let at = 0; at < line.length; at++) {
    const char = line[at];
    if (char === "[" || char === "{") open++;
    else if (char === "]" || char === "}") open--;
    else if (char === '"' || char === "'") {
      if (!beginsValue(line, at)) {
        // Within a plain text: a part of it, unless that is in a flow collection.
        if (BRACKET.test(line)) return undefined;
        continue;
      }
      bare += line.slice(from, at);
      at = endOfQuoted(line, at);
      if (at < 0) return undefined;
      from = at + 1;
    }
    if (open < 0) return undefined;
  }
  return open === 0 ? bare + line.slice(from) : undefined;
}

/** Counts the items and keys that can begin in the line, besides the first key; to `max` and a little more. */
function countItems(line: string, max: number): number {
  let count = 0;
  // A list of all matches of a long line would take thirty times its memory.
  for (const _ of line.matchAll(ITEM)) if (++count > max + 1) return count;
  return count > 0 && KEY.test(line) ? count - 1 : count;
}

/** Whether a quote at the position is the first character of a value, not one in the middle of a plain text. */
function beginsValue(line: string, position: number): boolean {
  const before = line.slice(0, position).trimEnd();
  const last = before.at(-1) ?? "";
  if (last === ":") return before.length < position;
  return (
    BRACKET.test(last) || (last === "," && BRACKET.test(before)) || (before.length < DASHES_MAX && DASHES.test(before))
  );
}

/** The position of the closing quote, or -1. */
function endOfQuoted(line: string, start: number): number {
  const quote = line[start];
  for (let at = start + 1; at < line.length; at++) {
    if (quote === '"' && line[at] === "\\") at++;
    else if (line[at] === quote) {
      if (quote === '"' || line[at + 1] !== quote) return at;
      at++;
    }
  }
  return -1;
}

/** Counts all characters that a value may follow. */
function countIndicators(text: string, max: number): number {
  let count = 1;
  for (let start = 0; start < text.length && count <= max; start += CHUNK) {
    count += text.slice(start, start + CHUNK).match(INDICATOR)?.length ?? 0;
  }
  return count;
}
