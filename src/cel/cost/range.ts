/** From at least to at most: sizes and costs that are not known yet. */

export interface Range {
  readonly min: number;
  /** `Infinity` when nothing bounds it. */
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

/** Nothing of something unbounded is nothing. */
function product(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : a * b;
}

/** Rounded up, as costs are. */
export function scale(range: Range, factor: number): Range {
  return { min: Math.ceil(product(range.min, factor)), max: Math.ceil(product(range.max, factor)) };
}

/** Whatever either may be. */
export function union(a: Range, b: Range): Range {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
