/** The strategies of NodeResourcesFit: how a node's score follows from its allocated resources. */
import type { NodeInfo } from "../../cache/node-info.ts";
import { MAX_NODE_SCORE } from "../../framework/plugin.ts";
import { type Allocation, DEFAULT_SCORED_RESOURCES, type ScoredResource } from "./allocation.ts";

/** The score, from 0 to 10, at a utilization in percent; zero where absent. */
export interface ShapePoint {
  readonly utilization?: number | undefined;
  readonly score?: number | undefined;
}

/** A weight of zero, which is the default, means 1. */
interface ResourceWeight {
  readonly name: string;
  readonly weight?: number | undefined;
}

export interface ScoringStrategy {
  readonly type?: "LeastAllocated" | "MostAllocated" | "RequestedToCapacityRatio" | undefined;
  readonly resources?: readonly ResourceWeight[] | undefined;
  readonly requestedToCapacityRatio?: { readonly shape?: readonly ShapePoint[] | undefined } | undefined;
}

export interface CompiledStrategy {
  readonly resources: readonly ScoredResource[];
  readonly score: (allocations: readonly Allocation[], node: NodeInfo) => number;
}

interface CompiledPoint {
  readonly utilization: number;
  readonly score: number;
}

/** The maximum score of a point of a shape. */
const MAX_SHAPE_SCORE = 10;

export function compileStrategy(strategy: ScoringStrategy = {}): CompiledStrategy {
  const resources = (strategy.resources ?? DEFAULT_SCORED_RESOURCES).map(({ name, weight = 0 }) => ({
    name,
    weight: weight === 0 ? 1 : weight,
  }));
  switch (strategy.type) {
    case "MostAllocated":
      return { resources, score: (allocations, node) => weightedMean(allocations, node, mostAllocated) };
    case "RequestedToCapacityRatio": {
      const ratio = compileShape(strategy.requestedToCapacityRatio?.shape ?? []);
      return { resources, score: (allocations, node) => meanOfPositive(allocations, node, ratio) };
    }
    default:
      return { resources, score: (allocations, node) => weightedMean(allocations, node, leastAllocated) };
  }
}

function leastAllocated(requested: number, capacity: number): number {
  return requested > capacity ? 0 : Math.trunc(((capacity - requested) * MAX_NODE_SCORE) / capacity);
}

function mostAllocated(requested: number, capacity: number): number {
  return Math.trunc((Math.min(requested, capacity) * MAX_NODE_SCORE) / capacity);
}

/** Returns a score from 0 to 100. */
export type ResourceScore = (requested: number, capacity: number) => number;

/** Beyond the capacity the score is that of all of it. */
export function compileShape(points: readonly ShapePoint[]): ResourceScore {
  const shape = points.map(({ utilization = 0, score = 0 }) => ({
    utilization,
    score: score * (MAX_NODE_SCORE / MAX_SHAPE_SCORE),
  }));
  return (requested, capacity) =>
    interpolate(shape, capacity === 0 || requested > capacity ? 100 : Math.trunc((requested * 100) / capacity));
}

/** Resources that the node does not have do not count. */
function weightedMean(allocations: readonly Allocation[], node: NodeInfo, score: ResourceScore): number {
  let sum = 0;
  let weights = 0;
  for (const { weight, allocatable, requested } of allocations) {
    const capacity = allocatable(node);
    if (capacity === 0) continue;
    sum += score(requested(node), capacity) * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.trunc(sum / weights);
}

/** As upstream's RequestedToCapacityRatio: resources with a score of zero do not count either. */
function meanOfPositive(allocations: readonly Allocation[], node: NodeInfo, score: ResourceScore): number {
  let sum = 0;
  let weights = 0;
  for (const { weight, allocatable, requested } of allocations) {
    const capacity = allocatable(node);
    const value = capacity === 0 ? 0 : score(requested(node), capacity);
    if (value <= 0) continue;
    sum += value * weight;
    weights += weight;
  }
  return weights === 0 ? 0 : Math.round(sum / weights);
}

/** Linear between the points, constant beyond them. */
function interpolate(shape: readonly CompiledPoint[], utilization: number): number {
  const index = shape.findIndex((point) => utilization <= point.utilization);
  if (index < 0) return shape.at(-1)?.score ?? 0;
  const right = shape[index]!;
  const left = shape[index - 1];
  if (left === undefined) return right.score;
  const rise = (right.score - left.score) * (utilization - left.utilization);
  return left.score + Math.trunc(rise / (right.utilization - left.utilization));
}
