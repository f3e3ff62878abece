/** Sets of completion indexes of indexed jobs, as ordered intervals: `1,3-5,7`. */
import type { Interval } from "../../api/batch/job/indexes.ts";
import type { Pod } from "../../api/core/pod/schema.ts";

export const COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";

/** Ordered and disjoint. */
export type Indexes = readonly Interval[];

/** Drops indexes that are not below `completions` (the job was scaled down), and text that is no index. */
export function readIndexes(text: string, completions: number): Indexes {
  const intervals: Interval[] = [];
  for (const part of text.split(",")) {
    const [first, last = first] = part.split("-").map(parseIndex);
    if (first === undefined || last === undefined) continue;
    if (first >= completions) break;
    intervals.push({ first, last: Math.min(last, completions - 1) });
  }
  return mergeIndexes(intervals, []);
}

export function mergeIndexes(a: Indexes, b: Indexes): Indexes {
  const result: { first: number; last: number }[] = [];
  for (const { first, last } of [...a, ...b].sort((x, y) => x.first - y.first)) {
    const previous = result.at(-1);
    if (previous === undefined || first > previous.last + 1) result.push({ first, last });
    else previous.last = Math.max(previous.last, last);
  }
  return result;
}

export function addIndexes(indexes: Indexes, added: Iterable<number>): Indexes {
  const intervals = [...added].map((index) => ({ first: index, last: index }));
  return mergeIndexes(indexes, intervals);
}

/** By halves: thousands of pods are looked up in thousands of intervals. */
export function hasIndex(indexes: Indexes, index: number): boolean {
  let low = 0;
  let high = indexes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (indexes[middle]!.last < index) low = middle + 1;
    else high = middle;
  }
  const found = indexes[low];
  return found !== undefined && found.first <= index;
}

/** Two neighbours stand as `1,2`, more as `1-3`. */
export function formatIndexes(indexes: Indexes): string {
  return indexes
    .map(({ first, last }) => (first === last ? `${first}` : `${first}${last === first + 1 ? "," : "-"}${last}`))
    .join(",");
}

/** The number of indexes that both sets contain. */
export function countShared(a: Indexes, b: Indexes): number {
  let count = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [one, other] = [a[i]!, b[j]!];
    count += Math.max(0, Math.min(one.last, other.last) - Math.max(one.first, other.first) + 1);
    if (one.last <= other.last) i++;
    if (other.last <= one.last) j++;
  }
  return count;
}

/** The first `count` indexes below `completions` that the set lacks. */
export function firstMissing(indexes: Indexes, count: number, completions: number): readonly number[] {
  const missing: number[] = [];
  let candidate = 0;
  const addUntil = (end: number): void => {
    for (; candidate < Math.min(end, completions) && missing.length < count; candidate++) missing.push(candidate);
  };
  for (const { first, last } of indexes) {
    addUntil(first);
    candidate = Math.max(candidate, last + 1);
  }
  addUntil(completions);
  return missing;
}

/** Undefined for pods without a valid index. */
export function completionIndexOf({ metadata }: Pod): number | undefined {
  return parseIndex(metadata?.annotations?.[COMPLETION_INDEX] ?? "");
}

export function isIndexBelow(pod: Pod, completions: number): boolean {
  const index = completionIndexOf(pod);
  return index !== undefined && index < completions;
}

function parseIndex(text: string): number | undefined {
  return /^\+?\d+$/.test(text) ? Number(text) : undefined;
}
