/** Sets of completion indexes: `1,3-5,7`. */
import { goQuote } from "../../../schema/value/go-quote.ts";

export interface Interval {
  readonly first: number;
  readonly last: number;
}

/** The error of an invalid set, with Kubernetes' message. */
export class IndexesError extends Error {}

/**
 * Parses ascending indexes and intervals. Throws an `IndexesError` for other text and for indexes not below
 * `completions`.
 */
export function parseIndexes(text: string, completions: number): readonly Interval[] {
  if (text === "") return [];
  const intervals: Interval[] = [];
  for (const part of text.split(",")) {
    const interval = parseInterval(part, completions);
    const before = intervals.at(-1)?.last;
    if (before !== undefined && before >= interval.first) throw notIncreasingError(before, interval.first);
    intervals.push(interval);
  }
  return intervals;
}

export function countIndexes(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

/** Undefined where the sets have no index in common. The intervals are in ascending order. */
export function firstShared(a: readonly Interval[], b: readonly Interval[]): number | undefined {
  let next = 0;
  for (const one of a) {
    while (next < b.length && b[next]!.last < one.first) next++;
    const other = b[next];
    if (other !== undefined && other.first <= one.last) return Math.max(one.first, other.first);
  }
  return undefined;
}

function parseInterval(text: string, completions: number): Interval {
  const limits = text.split("-");
  if (limits.length > 2) {
    const rule = "an index interval can have at most two parts separated by '-'";
    throw new IndexesError(`the fragment ${goQuote(text)} violates the requirement that ${rule}`);
  }
  const [first = 0, last = first] = limits.map((limit) => parseIndex(limit, completions));
  if (limits.length === 2 && first >= last) throw notIncreasingError(first, last);
  return { first, last };
}

function parseIndex(text: string, completions: number): number {
  const quoted = goQuote(text);
  if (!/^[-+]?\d+$/.test(text)) throw new IndexesError(`cannot convert string to integer for index: ${quoted}`);
  const index = Number(text);
  if (index >= completions) throw new IndexesError(`too large index: ${quoted}`);
  return index;
}

function notIncreasingError(previous: number, current: number): IndexesError {
  return new IndexesError(`non-increasing order, previous: ${previous}, current: ${current}`);
}
