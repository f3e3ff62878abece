/**
 * The pods' own cgroups, of either version: made with their limits before the runtime puts containers into them, and
 * removed when nothing of the pod is left.
 */
import { mkdir, readdir, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Pod } from "../../api/core/pod.ts";
import { podAmount } from "./pod-amounts.ts";
import { podUid } from "./pod-fields.ts";
import { type CgroupLimits, looser, podLimits } from "./pod-limits.ts";
import { qosClass } from "./qos.ts";
import { type CgroupSettings, type CpuSettings, cgroupParent, cpuShares } from "./resources.ts";

export interface PodCgroupsOptions {
  /** Where the kernel shows control groups: `/sys/fs/cgroup`. */
  readonly hierarchy: string;
  readonly settings: CgroupSettings & CpuSettings & { readonly podMaxPids: number };
  /** All pods of the node; what they ask for together is what their class as a whole gets. */
  readonly pods: () => readonly Pod[];
}

const controllers = ["cpu", "memory", "pids"] as const;
const tiers = ["", "besteffort", "burstable"];

export class PodCgroups {
  readonly #options: PodCgroupsOptions;

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
  }

  /**
   * Makes the pod's cgroup, or gives it what the pod asks for now; with `before`, enough for what it asked for before
   * too. systemd's slices are made by the runtime. Rejects when the kernel refuses.
   */
  async apply(pod: Pod, before?: Pod): Promise<void> {
    const { settings } = this.#options;
    if (!settings.cgroupsPerQos || settings.cgroupDriver !== "cgroupfs") return;
    const path = cgroupParent(pod, settings);
    const wanted = podLimits(pod, settings);
    await this.#write(path, before === undefined ? wanted : looser(podLimits(before, settings), wanted));
    await this.#applyClass(pod, dirname(path));
  }

  /** Best effort: a cgroup that is still in use stays, and costs little. */
  async remove(uid: string): Promise<void> {
    const { hierarchy, settings } = this.#options;
    for (const path of await cgroupsOf(uid, settings.cgroupRoot, hierarchy)) {
      for (const name of await readdir(path, { withFileTypes: true }).catch(() => [])) {
        if (name.isDirectory()) await rmdir(join(path, name.name)).catch(() => undefined);
      }
      await rmdir(path).catch(() => undefined);
    }
  }

  /** The pods', and then those that held them, unless somebody else's pods are in there. */
  async removeAll(uids: Iterable<string>): Promise<void> {
    for (const uid of uids) await this.remove(uid);
    const { hierarchy, settings } = this.#options;
    for (const top of await tops(hierarchy, settings.cgroupRoot)) {
      for (const tier of tiers.toReversed()) await rmdir(join(top, tier)).catch(() => undefined);
    }
  }

  /** Of pods of one class together; those that are guaranteed what they ask for share nothing. */
  async #applyClass(pod: Pod, path: string): Promise<void> {
    const tier = qosClass(pod);
    if (tier === "Guaranteed") return;
    const uid = podUid(pod);
    const others = this.#options.pods().filter((each) => podUid(each) !== uid && qosClass(each) === tier);
    const asked = [pod, ...others].reduce((sum, each) => sum + podAmount(each, "requests", "cpu"), 0);
    await this.#writeCpuShares(path, cpuShares(tier === "Burstable" ? asked : 0));
  }

  async #write(path: string, limits: CgroupLimits): Promise<void> {
    const { cpuQuotaUs, cpuPeriodUs, memoryBytes, pids } = limits;
    await this.#make(path);
    await this.#writeCpuShares(path, limits.cpuShares);
    if (await this.#isUnified()) {
      const at = join(this.#options.hierarchy, path);
      await writeFile(join(at, "cpu.max"), `${cpuQuotaUs ?? "max"} ${cpuPeriodUs}`);
      await writeFile(join(at, "memory.max"), String(memoryBytes ?? "max"));
      if (pids !== undefined) await writeFile(join(at, "pids.max"), String(pids));
      return;
    }
    await this.#writeFile("cpu", path, "cpu.cfs_period_us", cpuPeriodUs);
    await this.#writeFile("cpu", path, "cpu.cfs_quota_us", cpuQuotaUs ?? -1);
    await this.#writeFile("memory", path, "memory.limit_in_bytes", memoryBytes ?? -1);
    if (pids !== undefined) await this.#writeFile("pids", path, "pids.max", pids);
  }

  async #writeCpuShares(path: string, shares: number): Promise<void> {
    if (await this.#isUnified()) {
      await writeFile(join(this.#options.hierarchy, path, "cpu.weight"), String(cpuWeight(shares)));
    } else {
      await this.#writeFile("cpu", path, "cpu.shares", shares);
    }
  }

  /** Of version 1; a controller that the kernel lacks limits nothing. */
  async #writeFile(controller: (typeof controllers)[number], path: string, name: string, value: number): Promise<void> {
    const top = join(this.#options.hierarchy, controller);
    if (await isDirectory(top)) await writeFile(join(top, path, name), String(value));
  }

  async #make(path: string): Promise<void> {
    const { hierarchy } = this.#options;
    if (!(await this.#isUnified())) {
      for (const controller of controllers) {
        const top = join(hierarchy, controller);
        if (await isDirectory(top)) await mkdir(join(top, path), { recursive: true });
      }
      return;
    }
    let at = hierarchy;
    for (const part of path.split("/").filter((each) => each !== "")) {
      await writeFile(join(at, "cgroup.subtree_control"), controllers.map((name) => `+${name}`).join(" "));
      at = join(at, part);
      await mkdir(at, { recursive: true });
    }
  }

  /** Version 2 has one tree, and says so at its root. */
  async #isUnified(): Promise<boolean> {
    return await stat(join(this.#options.hierarchy, "cgroup.controllers")).then(
      () => true,
      () => false,
    );
  }
}

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function cgroupsOf(uid: string, root: string, hierarchy = "/sys/fs/cgroup"): Promise<readonly string[]> {
  const paths = (await tops(hierarchy, root)).flatMap((top) => tiers.map((tier) => join(top, tier, `pod${uid}`)));
  const found = await Promise.all(paths.map(isDirectory));
  return paths.filter((_, index) => found[index]);
}

/** With v2 the hierarchy's children are plain cgroups; none of them holds our path, so looking there costs nothing. */
async function tops(hierarchy: string, root: string): Promise<readonly string[]> {
  const names = await readdir(hierarchy).catch(() => []);
  return [hierarchy, ...names.map((name) => join(hierarchy, name))].map((top) => join(top, root, "kubepods"));
}

/** Version 2 weighs from 1 to 10000 what version 1 shares from 2 to 262144. */
export function cpuWeight(shares: number): number {
  return 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (each) => each.isDirectory(),
    () => false,
  );
}
