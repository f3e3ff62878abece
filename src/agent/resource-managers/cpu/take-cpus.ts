/** Chooses CPUs for a container, by the topology of the machine: Kubernetes' algorithms. */
import { iterateCombinations } from "../topology/numa-mask.ts";
import { CpuAccumulator, type CpuSorting } from "./cpu-accumulator.ts";
import type { CpuSet } from "./cpu-set.ts";
import type { CpuTopology } from "./cpu-topology.ts";

export interface CpuRequest {
  readonly topology: CpuTopology;
  readonly available: CpuSet;
  readonly count: number;
  readonly sorting: CpuSorting;
}

/** Takes as few NUMA nodes, sockets and cores as possible. Throws when there are too few CPUs. */
export function takePacked(request: CpuRequest, alignByUncoreCache: boolean): CpuSet {
  const accumulator = startAccumulator(request);
  if (accumulator.isSatisfied) return accumulator.result;
  const steps = [
    () => accumulator.takeLargestUnits(),
    ...(alignByUncoreCache ? [() => accumulator.takeUncoreCaches()] : []),
    ...(request.sorting === "spread" ? [] : [() => accumulator.takeFullCores()]),
    () => accumulator.takeRemaining(),
  ];
  for (const step of steps) {
    step();
    if (accumulator.isSatisfied) return accumulator.result;
  }
  throw new Error("failed to allocate cpus");
}

function startAccumulator({ topology, available, count, sorting }: CpuRequest): CpuAccumulator {
  const accumulator = new CpuAccumulator(topology, available, count, sorting);
  if (!accumulator.isSatisfied && accumulator.isFailed) {
    const figures = `requested=${count}, available=${available.size}`;
    throw new Error(`not enough cpus available to satisfy request: ${figures}`);
  }
  return accumulator;
}

/**
 * Takes as many CPUs from each NUMA node where one node does not have enough, in groups of that size, and leaves the
 * free CPUs as balanced as possible.
 */
export function takeDistributed(request: CpuRequest, groupSize: number): CpuSet {
  const { count } = request;
  if (count % groupSize !== 0) return takePacked(request, false);
  const accumulator = startAccumulator(request);
  if (accumulator.isSatisfied) return accumulator.result;
  const nodes = accumulator.sortNodes();
  const free = new Map(nodes.map((node) => [node, accumulator.free.cpusIn("numaNode", node).size]));
  const [min, max] = accumulator.nodeCountRange(groupSize);
  for (let size = min; size <= max; size++) {
    const best = findBestDistribution({ nodes, free, count, groupSize }, size);
    if (best !== undefined) return takeFromNodes(request, accumulator, best, groupSize);
  }
  return takePacked(request, false);
}

interface NodeRequest {
  readonly nodes: readonly number[];
  /** Free CPUs by node. */
  readonly free: ReadonlyMap<number, number>;
  readonly count: number;
  readonly groupSize: number;
}

interface Distribution {
  readonly nodes: readonly number[];
  /** CPUs from each of the nodes. */
  readonly each: number;
  /** Nodes from which the rest is taken, a group from each in turn. */
  readonly remainderNodes: readonly number[];
  /** Standard deviation of the free CPUs of all nodes afterwards. */
  readonly balance: number;
}

function findBestDistribution(request: NodeRequest, size: number): Distribution | undefined {
  let best: Distribution | undefined;
  for (const nodes of iterateCombinations(request.nodes, size)) {
    if (best?.balance === 0) break;
    const distribution = distribute(request, nodes);
    if (distribution !== undefined && distribution.balance < (best?.balance ?? Number.MAX_VALUE)) best = distribution;
  }
  return best;
}

function distribute({ free, count, groupSize }: NodeRequest, nodes: readonly number[]): Distribution | undefined {
  const freeOf = (node: number): number => free.get(node) ?? 0;
  const groups = nodes.reduce((sum, node) => sum + Math.trunc(freeOf(node) / groupSize), 0);
  if (groups * groupSize < count) return undefined;
  const each = Math.trunc(Math.trunc(count / nodes.length) / groupSize) * groupSize;
  if (nodes.some((node) => freeOf(node) < each)) return undefined;
  const after = new Map(free);
  for (const node of nodes) after.set(node, freeOf(node) - each);
  const remainder = count - each * nodes.length;
  if (remainder === 0) return { nodes, each, remainderNodes: [], balance: standardDeviation(after) };
  const candidates = nodes.filter((node) => (after.get(node) ?? 0) >= groupSize);
  const best = findBestRemainder(candidates, after, remainder, groupSize);
  return best && { nodes, each, ...best };
}

function findBestRemainder(
  candidates: readonly number[],
  after: ReadonlyMap<number, number>,
  remainder: number,
  groupSize: number,
): Pick<Distribution, "remainderNodes" | "balance"> | undefined {
  let best: Pick<Distribution, "remainderNodes" | "balance"> | undefined;
  for (let size = candidates.length; size >= 1; size--) {
    for (const remainderNodes of iterateCombinations(candidates, size)) {
      const sum = remainderNodes.reduce((total, node) => total + (after.get(node) ?? 0), 0);
      if (sum < remainder) continue;
      const balance = standardDeviation(takeInTurn(remainderNodes, after, remainder, groupSize));
      if (balance < (best?.balance ?? Number.MAX_VALUE)) best = { remainderNodes, balance };
    }
  }
  return best;
}

/** What is free after a group of CPUs was taken from each node in turn, until the rest is allocated. */
function takeInTurn(
  nodes: readonly number[],
  after: ReadonlyMap<number, number>,
  remainder: number,
  groupSize: number,
): ReadonlyMap<number, number> {
  const left = new Map(after);
  let rest = remainder;
  while (rest > 0) {
    const before = rest;
    for (const node of nodes) {
      const free = left.get(node) ?? 0;
      if (rest === 0 || free < groupSize) continue;
      left.set(node, free - groupSize);
      rest -= groupSize;
    }
    // The nodes have single CPUs left, which form no group.
    if (rest === before) break;
  }
  return left;
}

function takeFromNodes(
  { topology, sorting }: CpuRequest,
  accumulator: CpuAccumulator,
  { nodes, each, remainderNodes }: Distribution,
  groupSize: number,
): CpuSet {
  const take = (node: number, count: number): void => {
    const available = accumulator.free.cpusIn("numaNode", node);
    accumulator.take(takePacked({ topology, available, count, sorting }, false));
  };
  for (const node of nodes) take(node, each);
  while (accumulator.needed > 0) {
    const before = accumulator.needed;
    for (const node of remainderNodes) {
      if (accumulator.needed === 0) break;
      if (accumulator.free.cpusIn("numaNode", node).size >= groupSize) take(node, groupSize);
    }
    if (accumulator.needed === before) {
      throw new Error(`accounting error, not enough CPUs allocated, remaining: ${accumulator.needed}`);
    }
  }
  return accumulator.result;
}

function standardDeviation(free: ReadonlyMap<number, number>): number {
  const values = [...free.values()];
  const mean = roundToThousandths(values.reduce((sum, value) => sum + value, 0) / values.length);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return roundToThousandths(Math.sqrt(variance));
}

/** Kubernetes compares rounded values. */
function roundToThousandths(value: number): number {
  return Math.round(value * 1000) / 1000;
}
