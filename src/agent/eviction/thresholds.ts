/** Eviction thresholds: from the configuration, and which of them the observed figures meet. */
import type { EvictionConfig } from "../agent-config.ts";
import { computeShare, computeThreshold } from "../node/status/capacity.ts";
import { type FileSystemLayout, isSignal, type Observation, type Observations, type Signal } from "./signals.ts";

/** Compared by identity: each is made once. */
export interface Threshold {
  readonly signal: Signal;
  /** `100Mi`, or a share of the capacity: `10%`. */
  readonly value: string;
  /** In the format of `value`: how much more than that must be available until the threshold is not met any more. */
  readonly minimumReclaim: string | undefined;
  /** 0 for a hard threshold. */
  readonly graceMs: number;
}

type ThresholdValues = Readonly<Record<string, string>>;

export function makeThresholds({ hard, soft, softGraceMs, minimumReclaim, enforcesPods }: EvictionConfig) {
  const make = (statements: ThresholdValues, graceMs: (signal: Signal) => number): readonly Threshold[] =>
    Object.entries(statements).flatMap(([signal, value]) => {
      // Kubernetes ignores these two shares.
      if (!isSignal(signal) || value === "0%" || value === "100%") return [];
      return { signal, value, minimumReclaim: minimumReclaim[signal], graceMs: graceMs(signal) };
    });
  const thresholds = [...make(hard, () => 0), ...make(soft, (signal) => softGraceMs[signal] ?? 0)];
  if (!enforcesPods) return thresholds;
  const ofPods = thresholds
    .filter((each) => each.signal === "memory.available" && isHard(each))
    .map((each): Threshold => ({ ...each, signal: "allocatableMemory.available" }));
  return [...thresholds, ...ofPods];
}

export function isHard({ graceMs }: Threshold): boolean {
  return graceMs === 0;
}

/** Containers have the thresholds of the file system that they share; their own are ignored, as in Kubernetes. */
export function addContainerThresholds(
  thresholds: readonly Threshold[],
  { hasImageFs, isSplit }: FileSystemLayout,
): readonly Threshold[] {
  if (!hasImageFs && isSplit) return thresholds;
  const shared = hasImageFs && !isSplit ? "imagefs" : "nodefs";
  const copied = thresholds.flatMap((each): readonly Threshold[] => {
    if (each.signal === `${shared}.available`) return [{ ...each, signal: "containerfs.available" }];
    if (each.signal === `${shared}.inodesFree`) return [{ ...each, signal: "containerfs.inodesFree" }];
    return [];
  });
  return [...thresholds.filter((each) => !isOfContainerFs(each)), ...copied];
}

export function isOfContainerFs({ signal }: Threshold): boolean {
  return signal === "containerfs.available" || signal === "containerfs.inodesFree";
}

/**
 * Finds the thresholds that the observations meet, whatever their grace periods. With `enforceReclaim`, a threshold is
 * met until its minimum reclaim is available as well.
 */
export function findMetThresholds(
  thresholds: readonly Threshold[],
  observations: Observations,
  enforceReclaim: boolean,
): readonly Threshold[] {
  return thresholds.filter((threshold) => {
    const observed = observations.get(threshold.signal);
    if (observed === undefined) return false;
    const { minimumReclaim = "0" } = threshold;
    const reclaim = enforceReclaim ? computeShare(minimumReclaim, observed.capacity) : 0;
    return observed.available < thresholdQuantity(threshold, observed) + reclaim;
  });
}

export function thresholdQuantity({ value }: Threshold, { capacity }: Observation): number {
  return computeThreshold(value, capacity);
}

/** Memory first, otherwise in their order. */
export function sortByUrgency(thresholds: readonly Threshold[]): readonly Threshold[] {
  const isMemory = ({ signal }: Threshold): boolean =>
    signal === "memory.available" || signal === "allocatableMemory.available";
  return [...thresholds.filter(isMemory), ...thresholds.filter((each) => !isMemory(each))];
}

/** Units a second that the node could lose at most: bytes, inodes, processes. */
const RATES: Readonly<Record<Signal, number>> = {
  "memory.available": 4e9,
  "allocatableMemory.available": 4e9,
  "nodefs.available": 2e9,
  "imagefs.available": 2e9,
  "containerfs.available": 2e9,
  "nodefs.inodesFree": 1e6,
  "imagefs.inodesFree": 1e6,
  "containerfs.inodesFree": 1e6,
  "pid.available": 5e4,
};
export const INTERVAL_MS_MAX = 10_000;
const INTERVAL_MS_MIN = 100;
const DISK_INTERVAL_MS_MIN = 1_000;
const INTERVAL_MS_UNKNOWN = 1_000;
/** How much finer the memory is observed with `--kernel-memcg-notification`. */
const FINE_INTERVALS = 4;

/**
 * Milliseconds until the next check: no threshold that is not met can be met much earlier. So a node with much free
 * memory is observed rarely, and a process that allocates fast is found soon.
 */
export function computeIntervalMs(
  thresholds: readonly Threshold[],
  observations: Observations,
  kernelMemcgNotification: boolean,
): number {
  const intervals = thresholds.flatMap((threshold) => {
    const { signal } = threshold;
    const observed = observations.get(signal);
    // The cgroup of the pods may be made at any time.
    if (observed === undefined) return INTERVAL_MS_UNKNOWN;
    const headroom = observed.available - thresholdQuantity(threshold, observed);
    if (headroom < 0) return [];
    const isMemory = signal === "memory.available" || signal === "allocatableMemory.available";
    const finer = isMemory && kernelMemcgNotification ? FINE_INTERVALS : 1;
    const minMs = isMemory || signal === "pid.available" ? INTERVAL_MS_MIN / finer : DISK_INTERVAL_MS_MIN;
    return Math.max(minMs, (headroom / (RATES[signal] * finer)) * 1000);
  });
  return Math.min(INTERVAL_MS_MAX, ...intervals);
}
