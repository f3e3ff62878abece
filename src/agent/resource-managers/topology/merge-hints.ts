/** Merges the hints of all providers to the best one, with Kubernetes' comparison. */
import { countNodes, isNarrower, maskOf, type NumaMask, nodesOf } from "./numa-mask.ts";
import type { ResourceHints, TopologyHint } from "./topology-hint.ts";

export interface NumaNodes {
  /** In ascending order. */
  readonly nodes: readonly number[];
  /** Distances by node, in the order of `nodes`; empty: they are not compared. */
  readonly distances: ReadonlyMap<number, readonly number[]>;
}

export interface MergedHint {
  readonly affinity: NumaMask;
  readonly isPreferred: boolean;
}

const NO_PREFERENCE: readonly TopologyHint[] = [{ affinity: undefined, isPreferred: true }];
const UNSATISFIABLE: readonly TopologyHint[] = [{ affinity: undefined, isPreferred: false }];

/** One list of hints for each resource, and for each provider without any. */
export function listHints(hints: readonly ResourceHints[]): readonly (readonly TopologyHint[])[] {
  return hints.flatMap((ofProvider) => {
    const lists = Object.values(ofProvider);
    if (lists.length === 0) return [NO_PREFERENCE];
    return lists.map((list) => (list === undefined ? NO_PREFERENCE : list.length === 0 ? UNSATISFIABLE : list));
  });
}

/** Keeps hints without preference, and preferred ones of one node. */
export function keepSingleNode(hints: readonly (readonly TopologyHint[])[]): readonly (readonly TopologyHint[])[] {
  return hints.map((list) =>
    list.filter(({ affinity, isPreferred }) => isPreferred && (affinity === undefined || countNodes(affinity) === 1)),
  );
}

export function mergeHints(
  hints: readonly (readonly TopologyHint[])[],
  { nodes, distances }: NumaNodes,
  prefersClosest: boolean,
): MergedHint {
  const all = maskOf(nodes);
  const bestCount = findLargestMinimum(hints);
  const chooseMask = prefersClosest ? (a: NumaMask, b: NumaMask) => isCloser(a, b, nodes, distances) : isNarrower;
  let best: MergedHint | undefined;
  for (const permutation of iteratePermutations(hints)) {
    const merged = mergePermutation(all, permutation);
    if (isBetter(merged, best, bestCount, chooseMask)) best = merged;
  }
  return best ?? { affinity: all, isPreferred: false };
}

/** The smallest number of nodes of each resource's hints; the largest of these is the best that a merge can reach. */
function findLargestMinimum(hints: readonly (readonly TopologyHint[])[]): number {
  const minima = hints.map((list) => {
    const counts = list.flatMap(({ affinity }) => (affinity === undefined ? [] : [countNodes(affinity)]));
    return counts.length === 0 ? 0 : Math.min(...counts);
  });
  return Math.max(0, ...minima);
}

function* iteratePermutations(hints: readonly (readonly TopologyHint[])[]): Generator<readonly TopologyHint[]> {
  const [first, ...rest] = hints;
  if (first === undefined) return yield [];
  for (const hint of first) for (const others of iteratePermutations(rest)) yield [hint, ...others];
}

function mergePermutation(all: NumaMask, permutation: readonly TopologyHint[]): MergedHint {
  const masks = permutation.flatMap(({ affinity }) => (affinity === undefined ? [] : [affinity]));
  return {
    affinity: masks.reduce((merged, mask) => merged & mask, all),
    isPreferred: permutation.every((hint) => hint.isPreferred) && masks.every((mask) => mask === masks[0]),
  };
}

type ChooseMask = (candidate: NumaMask, current: NumaMask) => boolean;

function isBetter(
  candidate: MergedHint,
  current: MergedHint | undefined,
  bestCount: number,
  chooseMask: ChooseMask,
): boolean {
  const count = countNodes(candidate.affinity);
  if (count === 0) return false;
  if (current === undefined) return true;
  if (candidate.isPreferred !== current.isPreferred) return candidate.isPreferred;
  const isChosen = candidate.affinity !== current.affinity && chooseMask(candidate.affinity, current.affinity);
  if (candidate.isPreferred) return isChosen;
  // Neither is preferred: the one with the number of nodes closest to the best, from below.
  const currentCount = countNodes(current.affinity);
  if (currentCount > bestCount) return isChosen;
  if (currentCount === bestCount) return count === bestCount && isChosen;
  if (count > bestCount) return false;
  return count === currentCount ? isChosen : count > currentCount;
}

/** Fewer nodes; with as many nodes, a smaller average distance; with the same distance, lower numbers. */
function isCloser(
  candidate: NumaMask,
  current: NumaMask,
  nodes: readonly number[],
  distances: ReadonlyMap<number, readonly number[]>,
): boolean {
  if (countNodes(candidate) !== countNodes(current)) return isNarrower(candidate, current);
  const difference = averageDistance(candidate, nodes, distances) - averageDistance(current, nodes, distances);
  return difference === 0 ? candidate < current : difference < 0;
}

function averageDistance(
  mask: NumaMask,
  nodes: readonly number[],
  distances: ReadonlyMap<number, readonly number[]>,
): number {
  const members = nodesOf(mask);
  const sum = members.reduce(
    (total, from) => total + members.reduce((s, to) => s + (distances.get(from)?.[nodes.indexOf(to)] ?? 0), 0),
    0,
  );
  return sum / members.length ** 2;
}
