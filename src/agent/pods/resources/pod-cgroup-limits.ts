/** Limits of a pod's cgroup, from the requests and limits of its containers. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CgroupLimits } from "../../cgroups/cgroup-tree.ts";
import { kernelPageSize, milliCpuToQuotaUs, milliCpuToShares, type ResourceSettings } from "./container-resources.ts";
import { getPodResource, isLimitedEverywhere } from "./pod-resources.ts";
import { getPodQosClass } from "./qos.ts";

export interface PodLimitSettings extends ResourceSettings {
  /** Unlimited when not positive. */
  readonly podMaxPids: number;
}

/** Limits the pod in the resources that each of its containers limits. */
export function makePodCgroupLimits(pod: Pod, settings: PodLimitSettings): CgroupLimits {
  const bestEffort = getPodQosClass(pod) === "BestEffort";
  const quota = settings.cpuCfsQuota && !bestEffort && isLimitedEverywhere(pod, "cpu");
  const memory = !bestEffort && isLimitedEverywhere(pod, "memory");
  const periodUs = settings.cpuCfsQuotaPeriodMs * 1000;
  return {
    cpuShares: milliCpuToShares(bestEffort ? 0 : getPodResource(pod, "requests", "cpu")),
    cpuQuotaUs: quota ? milliCpuToQuotaUs(getPodResource(pod, "limits", "cpu"), periodUs) : null,
    cpuPeriodUs: periodUs,
    memoryBytes: memory ? getPodResource(pod, "limits", "memory") : null,
    ...(settings.memoryQos === undefined ? {} : { memoryMinBytes: getPodResource(pod, "requests", "memory") }),
    ...(settings.podMaxPids > 0 ? { pids: settings.podMaxPids } : {}),
    ...makeHugePageLimits(settings.hugePageSizes ?? [], (name) => getPodResource(pod, "limits", name)),
  };
}

/** The limit of each size of huge pages; `quantity` returns 0 for a size without limit. */
export function makeHugePageLimits(
  sizes: readonly string[],
  quantity: (name: string) => number | null,
): Pick<CgroupLimits, "hugePages"> {
  if (sizes.length === 0) return {};
  return { hugePages: Object.fromEntries(sizes.map((size) => [kernelPageSize(size), quantity(`hugepages-${size}`)])) };
}

/** The larger of each limit, for the time in which containers change from one to the other. */
export function maxLimits(a: CgroupLimits, b: CgroupLimits): CgroupLimits {
  const most = (x: number | null | undefined, y: number | null | undefined): number | null =>
    x === null || y === null ? null : Math.max(x ?? 0, y ?? 0);
  return {
    ...b,
    cpuShares: Math.max(a.cpuShares ?? 0, b.cpuShares ?? 0),
    cpuQuotaUs: most(a.cpuQuotaUs, b.cpuQuotaUs),
    memoryBytes: most(a.memoryBytes, b.memoryBytes),
  };
}
