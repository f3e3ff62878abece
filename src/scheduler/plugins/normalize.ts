/** Scales scores so that the largest is 100. */
import { MAX_NODE_SCORE } from "../framework/plugin.ts";

/** In place, rounded down. */
export function normalize(scores: number[]): void {
  const largest = Math.max(0, ...scores);
  if (largest === 0) return;
  for (let index = 0; index < scores.length; index++) {
    scores[index] = Math.trunc((MAX_NODE_SCORE * scores[index]!) / largest);
  }
}

/** The same, with 100 for the smallest possible score. */
export function normalizeReversed(scores: number[]): void {
  normalize(scores);
  for (let index = 0; index < scores.length; index++) scores[index] = MAX_NODE_SCORE - scores[index]!;
}
