/** Ranges of sizes and costs: unsigned 64-bit integers in cel-go, whose sums and products end at the largest. */

export interface Range {
  readonly min: number;
  /** At most `MAX`, which stands for a value without a bound. */
  readonly max: number;
}

export const MAX = 2 ** 64;

export const unknownRange: Range = { min: 0, max: MAX };

export function fixed(size: number): Range {
  return { min: size, max: size };
}

export function add(a: Range, b: Range): Range {
  return { min: Math.min(a.min + b.min, MAX), max: Math.min(a.max + b.max, MAX) };
}

export function multiply(a: Range, b: Range): Range {
  return { min: Math.min(a.min * b.min, MAX), max: Math.min(a.max * b.max, MAX) };
}

/** Rounds up, as costs do. */
export function scale({ min, max }: Range, factor: number): Range {
  return { min: Math.min(Math.ceil(min * factor), MAX), max: Math.min(Math.ceil(max * factor), MAX) };
}

/** The smallest range that contains both. */
export function union(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
