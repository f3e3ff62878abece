/**
 * The pods' own cgroups: made with their limits before the runtime puts containers into them, and removed when nothing
 * of the pod is left.
 */
import { rmdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type CgroupLimits, CgroupTree } from "../../cgroups/cgroup-tree.ts";
import { type SystemdSlices, slicePath } from "../../cgroups/systemd-slices.ts";
import { podAmount } from "./pod-resources.ts";
import { podUid } from "../pod-fields.ts";
import { hugePageLimits, looser, type PodLimitSettings, podLimits } from "./pod-limits.ts";
import { qosClass } from "./qos.ts";
import { type CgroupSettings, cgroupParent, cpuShares, podCgroup } from "./container-resources.ts";

export interface PodCgroupSettings extends CgroupSettings, PodLimitSettings {
  /** The share of what pods ask for that pods of lesser classes may not use: `{ memory: "50%" }`. */
  readonly qosReserved?: Readonly<Record<string, string>>;
}

export interface PodCgroupsOptions {
  readonly tree: CgroupTree;
  readonly settings: PodCgroupSettings;
  /** All pods of the node; what they ask for together is what their class as a whole gets. */
  readonly pods: () => readonly Pod[];
  /** What pods may have together; undefined where nothing is set apart. */
  readonly memoryBytes?: number;
  /** With the systemd driver. */
  readonly slices?: Pick<SystemdSlices, "apply" | "remove"> | undefined;
}

const tiers = ["", "besteffort", "burstable"];
const classes = ["Burstable", "BestEffort"] as const;

export class PodCgroups {
  readonly #options: PodCgroupsOptions;
  readonly #tree: CgroupTree;

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /**
   * Makes the pod's cgroup, or gives it what the pod asks for now; with `before`, enough for what it asked for before
   * too. Rejects when the kernel, or systemd, refuses.
   */
  async apply(pod: Pod, before?: Pod): Promise<void> {
    const { settings } = this.#options;
    if (!settings.cgroupsPerQos) return;
    const wanted = podLimits(pod, settings);
    const limits = before === undefined ? wanted : looser(podLimits(before, settings), wanted);
    const parent = cgroupParent(pod, settings);
    await this.#write(parent, limits);
    await this.#applyClasses(pod);
  }

  /** Best effort: a cgroup that is still in use stays, and costs little. */
  async remove(uid: string): Promise<void> {
    const { settings, slices } = this.#options;
    for (const parent of parentsOf(uid, settings)) {
      await slices?.remove(parent);
      await this.#tree.remove(pathOf(parent));
    }
  }

  /** The pods', and then those that held them, unless somebody else's pods are in there. */
  async removeAll(uids: Iterable<string>): Promise<void> {
    for (const uid of uids) await this.remove(uid);
    const { settings } = this.#options;
    if (settings.cgroupDriver === "systemd") return;
    for (const tier of tiers.toReversed()) {
      for (const path of await this.#tree.directories(`${settings.cgroupRoot}/kubepods/${tier}`)) {
        await rmdir(path).catch(() => undefined);
      }
    }
  }

  /** Pods of one class have something together; those that are guaranteed what they ask for share nothing. */
  async #applyClasses(pod: Pod): Promise<void> {
    const { settings } = this.#options;
    const uid = podUid(pod);
    const all = [pod, ...this.#options.pods().filter((each) => podUid(each) !== uid)];
    const asked = (name: string, of: string): number =>
      all.filter((each) => qosClass(each) === of).reduce((sum, each) => sum + podAmount(each, "requests", name), 0);
    const memory = this.#memoryOfClasses(asked("memory", "Guaranteed"), asked("memory", "Burstable"));
    const own = qosClass(pod);
    for (const tier of classes) {
      if (tier !== own && memory === undefined) continue;
      await this.#write(podCgroup("", tier, settings), {
        cpuShares: cpuShares(tier === "Burstable" ? asked("cpu", tier) : 0),
        ...(memory === undefined ? {} : { memoryBytes: memory[tier] }),
        ...hugePageLimits(settings.hugePageSizes ?? [], () => null),
      });
    }
  }

  /** Less what is set apart for those that come before them. */
  #memoryOfClasses(guaranteed: number, burstable: number): Record<(typeof classes)[number], number> | undefined {
    const { settings, memoryBytes } = this.#options;
    const percent = Number.parseInt(settings.qosReserved?.memory ?? "", 10);
    if (Number.isNaN(percent) || memoryBytes === undefined) return undefined;
    const ofBurstable = memoryBytes - Math.floor((guaranteed * percent) / 100);
    return { Burstable: ofBurstable, BestEffort: ofBurstable - Math.floor((burstable * percent) / 100) };
  }

  async #write(parent: string, limits: CgroupLimits): Promise<void> {
    await applyLimits(this.#tree, this.#options.slices, parent, limits);
  }
}

/** `parent` is a path, or a systemd slice. What systemd has no word for is written where it put the slice. */
export async function applyLimits(
  tree: CgroupTree,
  slices: Pick<SystemdSlices, "apply"> | undefined,
  parent: string,
  limits: CgroupLimits,
): Promise<void> {
  if (!parent.endsWith(".slice")) await tree.make(parent);
  else await slices?.apply(parent, limits);
  await tree.limit(pathOf(parent), limits);
}

function pathOf(parent: string): string {
  return parent.endsWith(".slice") && !parent.startsWith("/") ? slicePath(parent) : parent;
}

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function cgroupsOf(uid: string, root: string, hierarchy = "/sys/fs/cgroup"): Promise<readonly string[]> {
  const tree = new CgroupTree(hierarchy);
  const settings = { cgroupDriver: "cgroupfs", cgroupRoot: root, cgroupsPerQos: true } as const;
  return (await Promise.all(parentsOf(uid, settings).map((path) => tree.directories(path)))).flat();
}

/** Where the pod may be, whatever its class. */
function parentsOf(uid: string, settings: CgroupSettings): readonly string[] {
  return (["Guaranteed", ...classes] as const).map((tier) => podCgroup(`pod${uid}`, tier, settings));
}
