/** The bounds of Prometheus' clients for seconds. */
export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Upper bounds of a histogram, each `factor` times the one before; multiplied one by one, as Kubernetes does. */
export function exponentialBuckets(first: number, factor: number, count: number): readonly number[] {
  const bounds: number[] = [];
  for (let bound = first; bounds.length < count; bound *= factor) bounds.push(bound);
  return bounds;
}
