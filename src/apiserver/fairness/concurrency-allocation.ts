/** Divides the server's seats among priority levels by their demand, within the bounds of each. */

export interface AllocationClass {
  /** At least the lower bound. */
  readonly target: number;
  readonly lowerBound: number;
  readonly upperBound: number;
}

export interface Allocation {
  /** Seats of each class, not rounded. */
  readonly seats: readonly number[];
  /** The part of its target that a class gets whose bounds do not matter. */
  readonly fairFraction: number;
}

/** Smaller targets count as this one. */
const TARGET_MIN = 0.001;
const EPSILON = 1e-7;

/**
 * Each class gets `fairFraction * target`, or the bound that prevents it, so that all together get `total`. Undefined
 * when the bounds do not allow that.
 */
export function allocateConcurrency(total: number, classes: readonly AllocationClass[]): Allocation | undefined {
  const relative = classes.map(({ target, lowerBound, upperBound }) => {
    const positive = Math.max(target, TARGET_MIN);
    return { target: positive, lower: lowerBound / positive, upper: upperBound / positive };
  });
  if (classes.some(({ target, lowerBound, upperBound }) => target < lowerBound || upperBound < lowerBound)) {
    return undefined;
  }
  const lowSum = sumOf(classes, ({ lowerBound }) => lowerBound);
  const highSum = sumOf(classes, ({ upperBound }) => upperBound);
  if (lowSum - total > EPSILON || total - highSum > EPSILON) return undefined;
  if (total === 0) return { seats: classes.map(() => 0), fairFraction: 0 };
  if (lowSum - total > -EPSILON) {
    const fairFraction = Math.min(...relative.map(({ lower }) => lower));
    return { seats: classes.map(({ lowerBound }) => lowerBound), fairFraction };
  }
  if (total - highSum > -EPSILON) {
    const fairFraction = Math.max(...relative.map(({ upper }) => upper));
    return { seats: classes.map(({ upperBound }) => upperBound), fairFraction };
  }
  const fairFraction = findFairFraction(total, lowSum, relative);
  const seats = classes.map(({ lowerBound, upperBound }, index) =>
    Math.max(lowerBound, Math.min(upperBound, fairFraction * relative[index]!.target)),
  );
  return { seats, fairFraction };
}

interface RelativeClass {
  readonly target: number;
  readonly lower: number;
  readonly upper: number;
}

/**
 * Raises the fraction from the lowest bound to the next one, and so on: between two bounds the sum of the allocations
 * grows in proportion to the targets of the classes that are at neither of their bounds.
 */
function findFairFraction(total: number, lowSum: number, classes: readonly RelativeClass[]): number {
  const bounds = classes
    .flatMap(({ target, lower, upper }) => [
      { at: lower, slope: target },
      { at: upper, slope: -target },
    ])
    .sort((a, b) => a.at - b.at);
  let fraction = bounds[0]?.at ?? 0;
  let sum = lowSum;
  let slope = 0;
  for (const bound of bounds) {
    const atBound = sum + (bound.at - fraction) * slope;
    if (slope > 0 && atBound >= total) break;
    sum = atBound;
    fraction = bound.at;
    slope += bound.slope;
  }
  return slope > 0 ? fraction + (total - sum) / slope : fraction;
}

function sumOf(classes: readonly AllocationClass[], boundOf: (one: AllocationClass) => number): number {
  return classes.reduce((sum, one) => sum + boundOf(one), 0);
}
