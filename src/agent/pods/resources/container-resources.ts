/** Converts requests and limits of containers to cgroup settings. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { LinuxContainerResources } from "../../runtime/cri/shared.ts";
import { isCritical } from "../pod-fields.ts";
import { computeOomScoreAdj, getPodQosClass } from "./qos.ts";
import { parseMillis, parseNanos, parseUnits } from "./quantities.ts";

export interface ResourceSettings {
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsQuotaPeriodMs: number;
  /** Sizes of huge pages that the kernel supports, in Kubernetes' notation: `2Mi`. */
  readonly hugePageSizes?: readonly string[];
  /** Whether the OOM killer kills all processes of a container together; requires cgroup v2. */
  readonly oomGroup?: boolean;
  /** Whether the kernel limits swap by cgroup v2. */
  readonly limitsSwap?: boolean;
  /** Whether Burstable pods may use swap; false when absent. */
  readonly limitedSwap?: boolean;
  /** Swap of the node that Burstable pods share by their requests of memory; 0: containers may use none. */
  readonly swapBytes?: number;
  /** Undefined: off, as on machines without cgroup v2. */
  readonly memoryQos?: MemoryQos | undefined;
}

/** Kubernetes' MemoryQoS: the kernel does not reclaim requested memory, and slows containers near their limit. */
export interface MemoryQos {
  /** Of the memory between request and limit, 0 to 1: what is used without being slowed. */
  readonly throttlingFactor: number;
  /** The limit of containers without one. */
  readonly allocatableBytes: number;
}

const PAGE_BYTES = 4096;
const SHARES_MIN = 2;
const SHARES_MAX = 262_144;
const QUOTA_US_MIN = 1_000;

export function makeContainerResources(
  pod: Pod,
  container: Container,
  settings: ResourceSettings,
  memoryCapacityBytes: number,
): LinuxContainerResources {
  const { requests } = container.resources ?? {};
  const cpuLimit = limitOf(pod, container, "cpu");
  // The limit replaces a missing request; without either the container gets the minimum of shares.
  const requested = parseMillis(requests?.cpu ?? cpuLimit);
  const limited = parseMillis(cpuLimit);
  const memory = parseUnits(limitOf(pod, container, "memory"));
  const period = settings.cpuCfsQuotaPeriodMs * 1000;
  return {
    cpuShares: BigInt(milliCpuToShares(requested)),
    ...(settings.cpuCfsQuota && limited > 0
      ? { cpuPeriod: BigInt(period), cpuQuota: BigInt(milliCpuToQuotaUs(limited, period)) }
      : {}),
    ...(memory > 0 ? { memoryLimitInBytes: BigInt(memory) } : {}),
    // cgroup v1 limits memory and swap together, which takes a limit of memory.
    ...(memory > 0 && settings.limitsSwap !== true ? { memorySwapLimitInBytes: BigInt(memory) } : {}),
    ...makeHugePageLimits(container, settings.hugePageSizes ?? []),
    oomScoreAdj: BigInt(computeOomScoreAdj(pod, container, memoryCapacityBytes)),
    ...makeUnified(container, settings, computeSwapLimit(pod, container, settings, memoryCapacityBytes)),
  };
}

/** A container without a limit has that of the pod as a whole. */
function limitOf({ spec }: Pod, { resources }: Container, name: "cpu" | "memory"): string | undefined {
  const own = resources?.limits?.[name];
  return parseNanos(own) > 0n ? own : (spec?.resources?.limits?.[name] ?? own);
}

/** Files of cgroup v2 with their content. */
function makeUnified(
  container: Container,
  { oomGroup, limitsSwap, memoryQos }: ResourceSettings,
  swapBytes: number,
): Pick<LinuxContainerResources, "unified"> {
  const unified = {
    ...(oomGroup === true ? { "memory.oom.group": "1" } : {}),
    ...(limitsSwap === true ? { "memory.swap.max": String(swapBytes) } : {}),
    ...(memoryQos === undefined ? {} : protectMemory(container, memoryQos)),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}

function protectMemory(
  { resources }: Container,
  { throttlingFactor, allocatableBytes }: MemoryQos,
): Readonly<Record<string, string>> {
  const requested = parseUnits(resources?.requests?.memory);
  const limited = parseUnits(resources?.limits?.memory);
  const most = limited > 0 ? limited : allocatableBytes;
  const pages = Math.floor((requested + (most - requested) * throttlingFactor) / PAGE_BYTES);
  const high = requested === limited ? 0 : pages * PAGE_BYTES;
  return {
    ...(requested > 0 ? { "memory.min": String(requested) } : {}),
    ...(high > requested ? { "memory.high": String(high) } : {}),
  };
}

/** Kubernetes' LimitedSwap: the container's share of the memory is its share of the swap. */
function computeSwapLimit(
  pod: Pod,
  container: Container,
  { swapBytes = 0 }: ResourceSettings,
  memoryCapacityBytes: number,
): number {
  if (swapBytes === 0 || !isSwappable(pod, container)) return 0;
  return Math.trunc((parseUnits(container.resources?.requests?.memory) / memoryCapacityBytes) * swapBytes);
}

/** Whether the container gets swap on a node that limits it, whether or not the node has any. */
export function mayUseSwap(pod: Pod, container: Container, { limitedSwap, limitsSwap }: ResourceSettings): boolean {
  return limitedSwap === true && limitsSwap === true && isSwappable(pod, container);
}

function isSwappable(pod: Pod, { resources }: Container): boolean {
  const requested = parseUnits(resources?.requests?.memory);
  const isLimited = requested === 0 || requested === parseUnits(resources?.limits?.memory);
  return !isLimited && !isCritical(pod) && getPodQosClass(pod) === "Burstable";
}

/** A size that the container does not request gets the limit 0. */
function makeHugePageLimits(
  container: Container,
  sizes: readonly string[],
): Pick<LinuxContainerResources, "hugepageLimits"> {
  if (sizes.length === 0) return {};
  const limit = (size: string): bigint => BigInt(parseUnits(container.resources?.limits?.[`hugepages-${size}`]));
  return { hugepageLimits: sizes.map((size) => ({ pageSize: kernelPageSize(size), limit: limit(size) })) };
}

/** `2Mi` → `2MB` */
export function kernelPageSize(size: string): string {
  return size.replace(/i$/, "B");
}

/** Microseconds per period; the kernel's minimum is a millisecond. */
export function milliCpuToQuotaUs(millis: number, periodUs: number): number {
  return Math.max(QUOTA_US_MIN, Math.floor((millis * periodUs) / 1000));
}

export function milliCpuToShares(millis: number): number {
  return Math.min(SHARES_MAX, Math.max(SHARES_MIN, Math.floor((millis * 1024) / 1000)));
}
