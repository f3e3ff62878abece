/** What the cgroup of a whole pod is given, from what its containers ask for. */
import type { Pod } from "../../api/core/pod.ts";
import { isLimited, podAmount } from "./pod-amounts.ts";
import { qosClass } from "./qos.ts";
import { type CpuSettings, cpuQuotaUs, cpuShares } from "./resources.ts";

/** Undefined: no limit. */
export interface CgroupLimits {
  readonly cpuShares: number;
  readonly cpuQuotaUs: number | undefined;
  readonly cpuPeriodUs: number;
  readonly memoryBytes: number | undefined;
  readonly pids: number | undefined;
}

/** The pod is limited in what each of its containers is limited in. */
export function podLimits(pod: Pod, settings: CpuSettings & { readonly podMaxPids: number }): CgroupLimits {
  const bestEffort = qosClass(pod) === "BestEffort";
  const quota = settings.cpuCfsQuota && !bestEffort && isLimited(pod, "cpu");
  const memory = !bestEffort && isLimited(pod, "memory");
  const periodUs = settings.cpuCfsQuotaPeriodMs * 1000;
  return {
    cpuShares: cpuShares(bestEffort ? 0 : podAmount(pod, "requests", "cpu")),
    cpuQuotaUs: quota ? cpuQuotaUs(podAmount(pod, "limits", "cpu"), periodUs) : undefined,
    cpuPeriodUs: periodUs,
    memoryBytes: memory ? podAmount(pod, "limits", "memory") : undefined,
    pids: settings.podMaxPids > 0 ? settings.podMaxPids : undefined,
  };
}

/** Enough for either, for as long as containers go from one to the other. */
export function looser(a: CgroupLimits, b: CgroupLimits): CgroupLimits {
  const most = (x: number | undefined, y: number | undefined): number | undefined =>
    x === undefined || y === undefined ? undefined : Math.max(x, y);
  return {
    cpuShares: Math.max(a.cpuShares, b.cpuShares),
    cpuQuotaUs: most(a.cpuQuotaUs, b.cpuQuotaUs),
    cpuPeriodUs: b.cpuPeriodUs,
    memoryBytes: most(a.memoryBytes, b.memoryBytes),
    pids: most(a.pids, b.pids),
  };
}
