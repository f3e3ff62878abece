/** The node whose victims matter least. */
import { startOf, type Victims } from "./victims.ts";

/** Added to each priority, so that the sum grows with the number of pods although priorities may be negative. */
const PRIORITY_OFFSET = 2 ** 31;

/** Each criterion in its order leaves the candidates with the smallest value. */
const criteria: readonly ((candidate: Victims) => number)[] = [
  ({ violations }) => violations,
  ({ pods }) => pods[0]?.priority ?? Number.MIN_SAFE_INTEGER,
  ({ pods }) => pods.reduce((sum, { priority }) => sum + priority + PRIORITY_OFFSET, 0),
  ({ pods }) => pods.length,
  // The latest start of the most important victims: the least work is lost.
  (candidate) => -earliestStart(candidate),
];

export function chooseCandidate(candidates: readonly Victims[]): Victims | undefined {
  let left = candidates;
  for (const criterion of criteria) {
    if (left.length <= 1) break;
    const values = left.map(criterion);
    const smallest = Math.min(...values);
    left = left.filter((_, index) => values[index] === smallest);
  }
  return left[0];
}

function earliestStart({ pods }: Victims): number {
  const highest = pods[0]?.priority;
  return Math.min(...pods.filter(({ priority }) => priority === highest).map(startOf));
}
