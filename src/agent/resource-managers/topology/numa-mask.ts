/** A set of NUMA nodes as a bit mask, compared as Kubernetes compares them. */
export type NumaMask = bigint;

/** Kubernetes' masks have 64 bits. */
const NODES_MAX = 64;

/** Throws for a node that a mask cannot hold. */
export function maskOf(nodes: Iterable<number>): NumaMask {
  let mask = 0n;
  for (const node of nodes) {
    if (node < 0 || node >= NODES_MAX) {
      throw new RangeError(`bit number must be in range 0-${NODES_MAX - 1}: ${node}`);
    }
    mask |= 1n << BigInt(node);
  }
  return mask;
}

/** In ascending order. */
export function nodesOf(mask: NumaMask): readonly number[] {
  const nodes: number[] = [];
  for (let node = 0, rest = mask; rest > 0n; node++, rest >>= 1n) if ((rest & 1n) === 1n) nodes.push(node);
  return nodes;
}

export function countNodes(mask: NumaMask): number {
  return nodesOf(mask).length;
}

/** Fewer nodes; with as many nodes, the one with the lower numbers. */
export function isNarrower(a: NumaMask, b: NumaMask): boolean {
  const difference = countNodes(a) - countNodes(b);
  return difference === 0 ? a < b : difference < 0;
}

/** Every non-empty subset of the nodes: the smallest first, those of one size in the order of the nodes. */
export function* iterateMasks(nodes: readonly number[]): Generator<NumaMask> {
  for (let size = 1; size <= nodes.length; size++) {
    for (const subset of iterateCombinations(nodes, size)) yield maskOf(subset);
  }
}

/** Every subset of that size, in the order of the items. */
export function* iterateCombinations<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  if (size === 0) return yield [];
  for (let first = 0; first <= items.length - size; first++) {
    const head = items[first] as T;
    for (const tail of iterateCombinations(items.slice(first + 1), size - 1)) yield [head, ...tail];
  }
}
