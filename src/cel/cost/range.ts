/** Ranges of sizes and costs. */

export interface Range {
  readonly min: number;
  /** `Infinity` when unbounded. */
  readonly max: number;
}

export const unknownRange: Range = { min: 0, max: Number.POSITIVE_INFINITY };

export function fixed(size: number): Range {
  return { min: size, max: size };
}

export function add(a: Range, b: Range): Range {
  return { min: a.min + b.min, max: a.max + b.max };
}

export function multiply(a: Range, b: Range): Range {
  return { min: product(a.min, b.min), max: product(a.max, b.max) };
}

/** Zero times infinity is zero. */
function product(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : a * b;
}

/** Rounds up, as costs do. */
export function scale(range: Range, factor: number): Range {
  return { min: Math.ceil(product(range.min, factor)), max: Math.ceil(product(range.max, factor)) };
}

/** The smallest range that contains both. */
export function union(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
