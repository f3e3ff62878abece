/** The header `Range` (RFC 9110, section 14.2), with the errors and exceptions of Go's `net/http`. */

export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

/** A client that requests more ranges gets the whole. */
const RANGES_MAX = 100;

/** The ranges of a body of this size, none without a header; Go's text for a header that is invalid. */
export function parseRanges(header: string, size: number): readonly ByteRange[] | string {
  if (header === "") return [];
  if (!header.startsWith("bytes=")) return "invalid range";
  const ranges: ByteRange[] = [];
  let overlaps = true;
  for (const part of header.slice("bytes=".length).split(",", RANGES_MAX + 1)) {
    const text = part.trim();
    if (text === "") continue;
    const match = /^(\d*)\s*-\s*(\d*)$/.exec(text);
    if (match === null || (match[1] === "" && match[2] === "")) return "invalid range";
    const range = resolveRange(match[1] ?? "", match[2] ?? "", size);
    if (range === "invalid") return "invalid range";
    if (range === undefined) overlaps = false;
    else ranges.push(range);
  }
  if (ranges.length > RANGES_MAX) return [];
  // Of an empty body any range is the whole.
  return ranges.length === 0 && !overlaps && size > 0 ? "invalid range: failed to overlap" : ranges;
}

/** Undefined for a range behind the end. */
function resolveRange(first: string, last: string, size: number): ByteRange | "invalid" | undefined {
  const [from, to] = [Number(first), Number(last)];
  if (from > Number.MAX_SAFE_INTEGER || to > Number.MAX_SAFE_INTEGER) return "invalid";
  if (first === "") {
    const length = Math.min(to, size);
    return { start: size - length, length };
  }
  if (from >= size) return undefined;
  if (last === "") return { start: from, length: size - from };
  return from > to ? "invalid" : { start: from, length: Math.min(to, size - 1) - from + 1 };
}
