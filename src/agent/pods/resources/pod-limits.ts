/** What the cgroup of a whole pod is given, from what its containers ask for. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CgroupLimits } from "../../cgroups/cgroup-tree.ts";
import { isLimited, podAmount } from "./pod-resources.ts";
import { qosClass } from "./qos.ts";
import { cpuQuotaUs, cpuShares, kernelSize, type ResourceSettings } from "./container-resources.ts";

export interface PodLimitSettings extends ResourceSettings {
  /** Processes; without limit when not positive. */
  readonly podMaxPids: number;
}

/** The pod is limited in what each of its containers is limited in. */
export function podLimits(pod: Pod, settings: PodLimitSettings): CgroupLimits {
  const bestEffort = qosClass(pod) === "BestEffort";
  const quota = settings.cpuCfsQuota && !bestEffort && isLimited(pod, "cpu");
  const memory = !bestEffort && isLimited(pod, "memory");
  const periodUs = settings.cpuCfsQuotaPeriodMs * 1000;
  return {
    cpuShares: cpuShares(bestEffort ? 0 : podAmount(pod, "requests", "cpu")),
    cpuQuotaUs: quota ? cpuQuotaUs(podAmount(pod, "limits", "cpu"), periodUs) : null,
    cpuPeriodUs: periodUs,
    memoryBytes: memory ? podAmount(pod, "limits", "memory") : null,
    ...(settings.podMaxPids > 0 ? { pids: settings.podMaxPids } : {}),
    ...hugePageLimits(settings.hugePageSizes ?? [], (name) => podAmount(pod, "limits", name)),
  };
}

/** Of each size what is asked for, and nothing of those that nobody asks for. */
export function hugePageLimits(
  sizes: readonly string[],
  amount: (name: string) => number | null,
): Pick<CgroupLimits, "hugePages"> {
  if (sizes.length === 0) return {};
  return { hugePages: Object.fromEntries(sizes.map((size) => [kernelSize(size), amount(`hugepages-${size}`)])) };
}

/** Enough for either, for as long as containers go from one to the other. */
export function looser(a: CgroupLimits, b: CgroupLimits): CgroupLimits {
  const most = (x: number | null | undefined, y: number | null | undefined): number | null =>
    x === null || y === null ? null : Math.max(x ?? 0, y ?? 0);
  return {
    ...b,
    cpuShares: Math.max(a.cpuShares ?? 0, b.cpuShares ?? 0),
    cpuQuotaUs: most(a.cpuQuotaUs, b.cpuQuotaUs),
    memoryBytes: most(a.memoryBytes, b.memoryBytes),
  };
}
